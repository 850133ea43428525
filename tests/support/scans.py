"""Hypothesis strategies for models around one random Scan.

Each draws a `ScanCase`: a model that onnxruntime loads and runs, and feeds for it. Bodies mix nodes that depend on nothing,
on the scan inputs, and on the states, grown from the table in `growths`; values stay small and recurrences contract or grow
slowly, so that outputs can be compared at float precision.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from onnx import ModelProto, ValueInfoProto, helper

from tests.support.bodies import Stream, Style, grow_scan, value_info
from tests.support.growing import FLOATS, Scope, Val, World

__all__ = ["OPSETS", "ScanCase", "map_scans", "scan_models"]

OPSETS = (8, 9, 10, 11, 13, 16, 18, 19, 21, 23, 24, 25)
DTYPES = ("float32", "float64", "float16", "int32", "int64", "bool", "string")


class ScanCase(NamedTuple):
    model: ModelProto
    feeds: dict[str, np.ndarray]


@st.composite
def scan_models(
    draw: Callable[..., Any],
    *,
    opset: int | Sequence[int] = OPSETS,
    dtypes: Sequence[str] = DTYPES,
    max_states: int = 3,
    max_scan_inputs: int = 3,
    max_outputs: int = 3,
    max_nodes: int = 6,
    max_rank: int = 3,
    axes: bool = True,
    directions: bool = True,
    lengths: bool = True,
    nested: bool = True,
    state_kinds: Sequence[str] | None = None,
    direct_outputs: bool = False,
) -> ScanCase:
    """A model with a Scan of the given dialect(s), and feeds.

    `max_nodes` bounds each third of a body (before, core, after); `lengths` allows opset 8's sequence_lens; `state_kinds`
    restricts what states do (see `bodies.UPDATES`). With `direct_outputs`, bodies may also return an input or the same value
    twice: ONNX allows it, but onnxruntime computes garbage for it, so compare such models with the oracle alone.
    """
    opsets = [opset] if isinstance(opset, int) else [*opset, *(o for o in opset if o < 9)]  # the batched dialect twice as often
    version = draw(st.sampled_from(opsets))
    world = World(
        draw=draw,
        opset=version,
        ir_version=draw(st.sampled_from([8, 4, 3] if version == 8 else [10, 8])),
        dims=draw(st.sampled_from([(2, 3), (1, 2), (2, 1, 3)])),
        dtypes=draw(st.lists(st.sampled_from(dtypes), min_size=1, max_size=2, unique=True)),
        max_rank=max_rank,
        path_like_names=draw(st.integers(0, 4)) == 4,
        random=np.random.default_rng(draw(st.integers(0, 2**16))),
    )
    style = Style(
        max_nodes=max_nodes,
        max_outputs=max_outputs,
        axes=axes,
        directions=directions,
        lengths=lengths,
        state_kinds=state_kinds,
        direct_outputs=direct_outputs,
        nested=nested,
        body_types=draw(st.sampled_from(["shapes", "ranks", "shapes", "types"] if version > 8 else ["shapes", "ranks"])),
    )
    return _Main(world, style).case(max_states, max_scan_inputs)


def map_scans(**options: Any) -> st.SearchStrategy[ScanCase]:
    """Scans without a recurrence: no states, or ones the body only reads and passes on. Options as of `scan_models`."""
    return scan_models(state_kinds=("pass",), **options)


class _Main:
    """The main graph: it makes operands for a Scan, and something of its outputs."""

    def __init__(self, world: World, style: Style):
        self.world, self.style = world, style
        self.scope = Scope(world)
        self.inputs: list[ValueInfoProto] = []
        self.feeds: dict[str, np.ndarray] = {}
        self.time, self.batch = world.between(1, 5), world.between(1, 3)
        self.symbols = {"T"} if world.chance() else set()
        if world.chance(3):
            self.symbols |= {"T", "B", "any"}

    def case(self, max_states: int, max_scan_inputs: int) -> ScanCase:
        world, scope = self.world, self.scope
        for _ in range(world.between(0, 2)):
            shape = world.shape()
            scope.pool.append(self.value(world.choose(world.dtypes), shape, [""] * len(shape)))
        streams: list[Stream] = []
        for _ in range(world.between(1, max_scan_inputs)):
            streams.append(self.stream(streams))
        states = [self.state() for _ in range(world.between(0, max_states))]
        lengths = self.lengths() if world.opset < 9 and self.style.lengths and world.chance() else None
        results = grow_scan(scope, self.style, states, streams, lengths)
        return ScanCase(self.model(self.chosen_outputs(results)), self.feeds)

    def value(self, dtype: str, shape: Sequence[int], axis_names: Sequence[str]) -> Val:
        """An operand: a graph input, something computed from one, or an initializer."""
        kind = self.world.choose(["input", "computed", "initializer"])
        array = self.world.array(dtype, shape)
        if kind == "initializer":
            return self.scope.constant(array)
        value = Val(self.world.name("in"), dtype, tuple(shape), 3, True)
        self.inputs.append(self.info(value, axis_names))
        self.feeds[value.name] = array
        if kind == "computed":
            op = "Tanh" if dtype in FLOATS else "Identity"
            return self.scope.node(op, [value], replace(value, exact=dtype not in FLOATS))
        return value

    def info(self, value: Val, axis_names: Sequence[str]) -> ValueInfoProto:
        dims = [name if {name, "any"} & self.symbols else size for name, size in zip(axis_names, value.shape, strict=True)]
        dims = [f"{value.name}_{i}" if dim == "" else dim for i, dim in enumerate(dims)]
        return value_info(value, dims)

    def stream(self, others: Sequence[Stream]) -> Stream:
        world = self.world
        direction = world.between(0, 1) if self.style.directions else 0
        if others and world.chance(4):
            return replace(others[0], direction=world.choose([others[0].direction, direction]))
        element = world.shape()
        names = [""] * len(element)
        axis = 0
        if world.opset < 9:
            shape, names = (self.batch, self.time, *element), ["B", "T", *names]
        else:
            axis = world.between(0, len(element)) if self.style.axes else 0
            shape = (*element[:axis], self.time, *element[axis:])
            names.insert(axis, "T")
            axis -= len(shape) if self.style.axes and world.chance() else 0
        return Stream(self.value(world.choose(world.dtypes), shape, names), axis, direction)

    def state(self) -> Val:
        element = self.world.shape()
        batch = [("B", self.batch)] if self.world.opset < 9 else []
        shape = [size for _, size in batch] + list(element)
        return self.value(self.world.choose(self.world.dtypes), shape, [name for name, _ in batch] + [""] * len(element))

    def lengths(self) -> Val:
        longest = self.world.random.integers(1, self.time + 1, self.batch)
        array = np.where(self.world.chance(), longest, self.time).astype(np.int64)
        if self.world.chance(3):
            return self.scope.constant(array)
        value = Val(self.world.name("lengths"), "int64", array.shape, self.time, True)
        self.inputs.append(self.info(value, ["B"]))
        self.feeds[value.name] = array
        return value

    def chosen_outputs(self, results: Sequence[Val]) -> list[Val]:
        """Most of the Scan's outputs, some of them through one more node."""
        world = self.world
        chosen = [value for value in results if not world.chance(4)] or list(results[:1])
        return [self.scope.node("Identity", [v], v) if world.chance(3) else v for v in chosen]

    def model(self, outputs: Sequence[Val]) -> ModelProto:
        world, scope = self.world, self.scope
        inputs = list(self.inputs)
        if world.ir_version < 4:
            inputs += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in scope.initializers]
        named = [value_info(v, [f"{v.name}_{i}" for i in range(v.rank)] if self.symbols else v.shape) for v in outputs]
        graph = helper.make_graph(scope.nodes, "main", inputs, named, scope.initializers)
        imports = [helper.make_opsetid("", world.opset)]
        return helper.make_model(graph, ir_version=world.ir_version, opset_imports=imports)
