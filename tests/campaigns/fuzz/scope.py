"""A graph being written: its nodes, its constants, and the values in sight."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from tests.campaigns.fuzz.values import Dim, Val, numpy_type, typed_info
from tests.campaigns.fuzz.world import Fed, World
from tests.support.kernels import has_kernel

__all__ = ["Scope"]


@dataclass
class Scope:
    """A graph of ``world``; ``outer`` is the graph whose values it captures."""

    world: World
    outer: "Scope | None" = None
    nodes: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    pool: list[Val] = field(default_factory=list)
    produced: set[str] = field(default_factory=set)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def visible(self) -> list[Val]:
        return self.pool + (self.outer.visible if self.outer else [])

    @property
    def main(self) -> "Scope":
        return self.outer.main if self.outer else self

    def inner(self) -> "Scope":
        return Scope(self.world, self)

    def runs(self, op: str, dtype: str) -> bool:
        try:
            return bool(has_kernel(op, self.world.opset, dtype))
        except KeyError:
            return False

    def pick(self, suits: Callable[[Val], bool], own: float = 0.7) -> Val | None:
        """A value in sight that suits, one of this graph first with probability ``own``."""
        for pool in ([self.pool] if self.world.chance(own) else []) + [self.visible]:
            fitting = [value for value in pool if value.dims is not None and suits(value)]
            if fitting:
                return self.world.choose(fitting)
        return None

    def op(self, op: str, inputs: Sequence[Val | None], dims: Sequence[Dim] | None, dtype: str = "", **attributes: Any) -> Val:
        """Add a node of one output, of the type of the first input unless said."""
        first = next((value for value in inputs if value is not None), None)
        assert dtype or first is not None
        kind = dtype or (first.dtype if first else "")
        return self.ops(op, inputs, [Val("", kind, None if dims is None else tuple(dims))], **attributes)[0]

    def ops(self, op: str, inputs: Sequence[Val | None], outs: Sequence[Val], domain: str = "", **attributes: Any) -> list[Val]:
        made = [Val(self.world.name(), out.dtype, out.dims) for out in outs]
        names = [value.name if value else "" for value in inputs]
        self.nodes.append(helper.make_node(op, names, [out.name for out in made], domain=domain or None, **attributes))
        self.produced.update(out.name for out in made)
        self.pool += made
        return made

    def const(self, array: Any, dtype: str = "", place: str = "") -> Val:
        """A constant: an initializer here or outside, or a Constant node."""
        world = self.world
        kind = dtype or ("string" if np.asarray(array).dtype == object else np.asarray(array).dtype.name)
        held = np.asarray(array).astype(numpy_type(kind))
        value = Val(world.name("c"), kind, tuple(held.shape))
        tensor = numpy_helper.from_array(held, value.name) if kind != "string" else _words(held, value.name)
        place = place or world.choose(["outer", "outer", "own", "own", "node"])
        if place == "node" and (world.opset < 9 and kind not in ("float32", "float64", "float16")):
            place = "outer"
        if place == "own" and world.ir_version < 4:
            place = "outer"
        if place == "node":
            self.nodes.append(_constant_node(self, value, tensor))
            self.produced.add(value.name)
        else:
            home = self.main if place == "outer" else self
            home.initializers.append(tensor)
        self.main.constants[value.name] = held
        return value

    def ints(self, *numbers: int) -> Val:
        return self.const(np.array(numbers, np.int64))

    def int(self, number: int, dtype: str = "int64") -> Val:
        return self.const(np.array(number, dtype))

    def real(self, number: float, dtype: str = "") -> Val:
        return self.const(np.array(number, numpy_type(dtype or self.world.real)), dtype or self.world.real)

    def weight(self, *shape: int, dtype: str = "", scale: float = 0.6) -> Val:
        """A weight: mostly constant, sometimes fed, sometimes computed."""
        kind = dtype or self.world.real
        if self.world.chance(0.1):
            return self.main.feed(kind, shape)
        if self.world.chance(0.05) and self.main.runs("Neg", kind):
            return self.main.op("Neg", [self.main.const(self.world.array(kind, shape, scale), kind)], shape)
        return self.const(self.world.array(kind, shape, scale), kind)

    def feed(self, dtype: str, dims: Sequence[Dim], kind: str = "any", below: Dim = 2) -> Val:
        """A new input of the model."""
        assert self.outer is None
        value = Val(self.world.name("x"), dtype, tuple(dims))
        self.world.inputs.append(Fed(value, kind, below))
        self.pool.append(value)
        return value

    def source(self, dtype: str, dims: Sequence[Dim]) -> Val:
        """An operand for a loop of this graph: something there, an input, something computed, or a constant."""
        world, dims = self.world, tuple(dims)
        if world.chance(0.45):
            found = self.pick(lambda v: v.dtype == dtype and v.dims == dims)
            if found is not None:
                return found
        fixed = [dim for dim in dims if isinstance(dim, int)]
        if len(fixed) == len(dims) and world.chance(0.15):
            return self.const(world.array(dtype, fixed), dtype)
        if len(dims) > 1 and world.chance(0.1) and self.runs("Transpose", dtype):
            order = [1, 0, *range(2, len(dims))]
            return self.op("Transpose", [self.main.feed(dtype, [dims[k] for k in order])], dims, perm=order)
        value = self.main.feed(dtype, dims)
        return self.op("Identity", [value], dims) if world.chance(0.15) and self.runs("Identity", dtype) else value

    def graph(self, name: str, inputs: Sequence[Val], outputs: Sequence[Val], types: str = "") -> GraphProto:
        """This graph as a body or branch, its inputs and outputs declared as the model declares those of bodies."""
        infos = [[self._declared(value, types) for value in side] for side in (inputs, outputs)]
        for info, value in zip(infos[0], inputs, strict=True):
            if value.dims == () and value.name.startswith(("i", "cond")):
                info.CopyFrom(typed_info(value.name, value, []))
        return helper.make_graph(self.nodes, name, *infos, self.initializers)

    def _declared(self, value: Val, types: str) -> ValueInfoProto:
        world = self.world
        how = types or world.body_types
        how = world.choose(["sizes", "ranks", "untyped", "types"]) if how == "mixed" else how
        if how == "untyped" and value.dims is not None:
            return ValueInfoProto(name=value.name)
        if how == "types" or value.dims is None:
            return typed_info(value.name, value, None)
        return typed_info(value.name, value, world.written(value.shape, how == "sizes"))


def _words(array: np.ndarray, name: str) -> TensorProto:
    return helper.make_tensor(name, TensorProto.STRING, array.shape, [str(word).encode() for word in array.ravel()])


def _constant_node(scope: Scope, value: Val, tensor: TensorProto) -> NodeProto:
    world = scope.world
    array = numpy_helper.to_array(tensor)
    if world.opset >= 12 and world.chance(0.3) and value.rank < 2 and value.dtype in ("int64", "float32") and array.size:
        stem = "int" if value.dtype == "int64" else "float"
        held = array.tolist()
        return helper.make_node("Constant", [], [value.name], **{f"value_{stem}{'s' * value.rank}": held})
    return helper.make_node("Constant", [], [value.name], value=tensor)
