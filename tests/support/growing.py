"""Growing random ONNX graphs node by node, with every value's type, shape and size known.

A `Scope` is a graph being written: what is visible in it, and the means to add nodes and constants. A `Growth` picks
operands that suit it out of the scope, adds its nodes, and returns the new values (or none when nothing suits). Two
properties of each value keep comparisons meaningful:

* `bound`: no element is larger in magnitude. Values that would outgrow `LIMIT` are scaled down on the spot.
* `exact`: free of rounding, so that reordering float sums elsewhere cannot flip a comparison or a cast made of it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tests.support.kernels import has_kernel

__all__ = ["FLOATS", "INTS", "Growth", "Scope", "Val", "World", "elem_type", "grow", "tame"]

FLOATS = ("float32", "float64", "float16")
INTS = ("int32", "int64")
LIMIT = 30.0
WORDS = np.array(["", "a", "bc", "söder", "x y"], dtype=object)


@dataclass(frozen=True)
class Val:
    name: str
    dtype: str
    shape: tuple[int, ...]
    bound: float
    exact: bool

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass
class World:
    """What the graphs of one model share."""

    draw: Callable[..., Any]
    opset: int
    ir_version: int
    dims: Sequence[int]
    dtypes: Sequence[str]
    max_rank: int
    path_like_names: bool
    random: np.random.Generator
    count: int = 0

    def choose(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def chance(self, one_in: int = 2) -> bool:
        return self.draw(st.integers(1, one_in)) == one_in if one_in > 1 else True

    def between(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def name(self, stem: str) -> str:
        self.count += 1
        return f"net/{stem}_{self.count}:0" if self.path_like_names else f"{stem}{self.count}"

    def shape(self, least_rank: int = 0) -> tuple[int, ...]:
        rank = self.between(least_rank, max(least_rank, self.max_rank))
        return tuple(self.choose(self.dims) for _ in range(rank))

    def array(self, dtype: str, shape: Sequence[int]) -> np.ndarray:
        """Random elements: multiples of 1/8 in [-2, 2], integers in [-3, 3], truth values, words."""
        if dtype == "string":
            return self.random.choice(WORDS, size=shape).reshape(shape)
        if dtype == "bool":
            return np.asarray(self.random.random(shape) < 0.5)
        if dtype in INTS:
            return np.asarray(self.random.integers(-3, 4, shape)).astype(dtype)
        return np.asarray(self.random.integers(-16, 17, shape) / 8).astype(dtype)


@dataclass
class Scope:
    """A graph being written."""

    world: World
    outer: "Scope | None" = None
    nodes: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    pool: list[Val] = field(default_factory=list)
    produced: set[str] = field(default_factory=set)

    @property
    def visible(self) -> list[Val]:
        return self.pool + (self.outer.visible if self.outer else [])

    @property
    def depth(self) -> int:
        return 1 + self.outer.depth if self.outer else 0

    def inner(self) -> "Scope":
        return Scope(self.world, self)

    def runs(self, op: str, dtype: str) -> bool:
        return has_kernel(op, self.world.opset, dtype)

    def pick(self, suits: Callable[[Val], bool]) -> Val | None:
        fitting = [value for value in self.visible if suits(value)]
        return self.world.choose(fitting) if fitting else None

    def node(self, op: str, inputs: Sequence[Val | None], out: Val, **attributes: Any) -> Val:
        """Add a node; `out` describes its output, whose name is made here."""
        return self.nodes_outputs(op, inputs, [out], **attributes)[0]

    def nodes_outputs(self, op: str, inputs: Sequence[Val | None], outs: Sequence[Val], **attributes: Any) -> list[Val]:
        outs = [replace(out, name=self.world.name(op.lower())) for out in outs]
        names = [value.name if value else "" for value in inputs]
        self.nodes.append(helper.make_node(op, names, [out.name for out in outs], **attributes))
        self.produced.update(out.name for out in outs)
        return outs

    def constant(self, array: np.ndarray) -> Val:
        """A constant in one of the places constants live: an outer or own initializer, or a Constant node."""
        places = ["outer", "own", "node"]
        if self.world.ir_version < 4:
            places.remove("own")
        if self.world.opset < 9 and array.dtype.kind != "f":
            places.remove("node")
        dtype = "string" if array.dtype == object else array.dtype.name
        bound = float(np.abs(array).max(initial=0)) if dtype in FLOATS + INTS else 1.0
        value = Val(self.world.name("const"), dtype, array.shape, bound, True)
        tensor = numpy_helper.from_array(array, value.name)
        place = self.world.choose(places)
        if place == "node":
            return self.node("Constant", [], value, value=tensor)
        home = self
        while place == "outer" and home.outer:
            home = home.outer
        home.initializers.append(tensor)
        return value

    def shape_constant(self, numbers: Sequence[int]) -> Val:
        return self.constant(np.array(numbers, np.int64))


Growth = Callable[[Scope], "Sequence[Val] | Val | None"]


def elem_type(dtype: str) -> int:
    return TensorProto.STRING if dtype == "string" else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def grow(scope: Scope, growths: Sequence[Growth], count: int) -> None:
    """Try `count` growths; their values join the scope's pool."""
    for _ in range(count):
        values = scope.world.choose(growths)(scope)
        for value in [values] if isinstance(values, Val) else values or []:
            scope.pool.append(tame(scope, value))


def tame(scope: Scope, value: Val, limit: float = LIMIT) -> Val:
    """`value`, or a scaled-down form of it where it could be larger than `limit`."""
    if value.bound <= limit:
        return value
    if value.dtype in FLOATS:
        scale = scope.constant(np.array(limit / value.bound / 2, value.dtype))
        return scope.node("Mul", [value, scale], replace(value, bound=limit, exact=False))
    modulus = scope.constant(np.array(5, value.dtype))
    if scope.runs("Mod", value.dtype):
        return scope.node("Mod", [value, modulus], replace(value, bound=5))
    quotient = scope.node("Div", [value, modulus], value)
    multiple = scope.node("Mul", [quotient, modulus], value)
    return scope.node("Sub", [value, multiple], replace(value, bound=5))
