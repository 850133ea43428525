"""Growing Scans, and the growths that hold bodies of their own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import ValueInfoProto, helper

from tests.support.growing import FLOATS, INTS, Scope, Val, World, elem_type, grow, tame
from tests.support.growths import GROWTHS

__all__ = ["Stream", "Style", "grow_scan", "value_info"]


@dataclass(frozen=True)
class Stream:
    """A value scanned along an axis."""

    value: Val
    axis: int
    direction: int


@dataclass(frozen=True)
class Style:
    """How far a model goes in each respect."""

    max_nodes: int
    max_outputs: int
    axes: bool
    directions: bool
    lengths: bool
    state_kinds: Sequence[str] | None
    direct_outputs: bool
    nested: bool
    body_types: str


def value_info(value: Val, dims: Sequence[Any] | None) -> ValueInfoProto:
    return helper.make_tensor_value_info(value.name, elem_type(value.dtype), dims)


def grow_scan(
    outer: Scope, style: Style, states: Sequence[Val], streams: Sequence[Stream], lengths: Val | None = None
) -> list[Val]:
    """Add a Scan to `outer`; its final states and scan outputs."""
    world = outer.world
    batched = world.opset < 9
    first = streams[0]
    time = first.value.shape[1] if batched else first.value.shape[first.axis]
    body = outer.inner()
    kinds = [world.choose(_kinds_for(style, state.dtype)) for state in states]
    own = [_body_input(world, "state", s, s.shape[batched:], _assumed(s, k, time)) for s, k in zip(states, kinds, strict=True)]
    slices = [_body_input(world, "slice", s.value, _element(s, batched), s.value.bound) for s in streams]
    growths = GROWTHS + [branch] + ([_nested(style)] * 2 if style.nested and outer.depth == 0 else [])

    body.pool += slices
    grow(body, growths, world.between(0, style.max_nodes))
    body.pool += [replace(state, exact=state.dtype not in FLOATS) for state in own]
    grow(body, growths, world.between(0, style.max_nodes))
    updates = [UPDATES[kind](body, state) for kind, state in zip(kinds, own, strict=True)]
    grow(body, growths, world.between(0, style.max_nodes))
    count = world.between(0 if states else 1, max(style.max_outputs, 1))
    outputs = updates + [world.choose(body.pool) for _ in range(count)]
    outputs = _each_by_its_own_node(body, outputs, style.direct_outputs)
    graph = helper.make_graph(
        body.nodes,
        world.name("body"),
        [_body_info(value, style.body_types) for value in [*own, *slices]],
        [_body_info(value, style.body_types) for value in outputs],
        body.initializers,
    )
    attributes: dict[str, Any] = {"body": graph, "num_scan_inputs": len(streams)}
    finals = [replace(o, shape=s.shape, bound=i.bound) for o, s, i in zip(outputs, states, own, strict=False)]
    stacked: list[Val] = []
    scanned = [stream.value for stream in streams]
    if batched:
        attributes["directions"] = [stream.direction for stream in streams]
        batch = first.value.shape[0]
        stacked = [replace(o, shape=(batch, time, *o.shape)) for o in outputs[len(states) :]]
        operands = [lengths, *states, *scanned]
    else:
        attributes["scan_input_axes"] = [stream.axis for stream in streams]
        attributes["scan_input_directions"] = [stream.direction for stream in streams]
        out_axes = [world.between(-o.rank - 1, o.rank) if style.axes else 0 for o in outputs[len(states) :]]
        attributes["scan_output_axes"] = out_axes
        attributes["scan_output_directions"] = [world.between(0, 1) if style.directions else 0 for _ in out_axes]
        for value, axis in zip(outputs[len(states) :], out_axes, strict=True):
            at = axis % (value.rank + 1)
            stacked.append(replace(value, shape=(*value.shape[:at], time, *value.shape[at:])))
        operands = [*states, *scanned]
    plain = [name for name, numbers in attributes.items() if isinstance(numbers, list) and not any(numbers)]
    for name in plain if world.chance() else [name for name in plain if not attributes[name]]:
        del attributes[name]
    return outer.nodes_outputs("Scan", operands, [*finals, *stacked], **attributes)


def _body_input(world: World, stem: str, source: Val, shape: Sequence[int], bound: float) -> Val:
    return replace(source, name=world.name(stem), shape=tuple(shape), bound=bound)


def _element(stream: Stream, batched: bool) -> tuple[int, ...]:
    shape = stream.value.shape
    axis = stream.axis % len(shape)
    return shape[2:] if batched else (*shape[:axis], *shape[axis + 1 :])


def _body_info(value: Val, declared: str) -> ValueInfoProto:
    dims = {"shapes": value.shape, "ranks": [None] * value.rank, "types": None}[declared]
    return value_info(value, dims)


def _each_by_its_own_node(body: Scope, values: Sequence[Val], direct: bool) -> list[Val]:
    """The values as body outputs onnxruntime computes right: each the output of a node of this body, none twice."""
    outputs: list[Val] = []
    for value in values:
        fine = value.name in body.produced and value.name not in [o.name for o in outputs]
        local = fine or value.name in [v.name for v in body.pool]
        keep = fine or (direct and local and body.world.chance())
        outputs.append(value if keep else body.node("Identity", [value], value))
    return outputs


# States ---------------------------------------------------------------------------------------------------------------


def _kinds_for(style: Style, dtype: str) -> list[str]:
    kinds = ["sum", "blend", "pass", "largest", "forget", "count"] if dtype in FLOATS + INTS else ["pass", "forget", "blend"]
    return [kind for kind in kinds if style.state_kinds is None or kind in style.state_kinds]


def _assumed(state: Val, kind: str, time: int) -> float:
    """A bound that holds for the state at every step."""
    return max(state.bound, 5.0) + (5.0 * time if kind in ("sum", "count", "largest") else 0.0)


def _news(body: Scope, state: Val) -> Val:
    """Something small of the state's type that broadcasts to its shape."""

    def fits(v: Val) -> bool:
        pairs = list(zip(reversed(v.shape), reversed(state.shape), strict=False))
        return v.dtype == state.dtype and v.rank <= state.rank and all(a in (1, b) for a, b in pairs)

    found = body.pick(lambda v: fits(v) and v.name != state.name)
    whole = body.pick(lambda v: v.dtype == state.dtype and v.rank > 0 and body.runs("ReduceMax", v.dtype))
    if found is None and whole is not None and state.dtype != "bool":
        found = body.node("ReduceMax", [whole], replace(whole, shape=()), keepdims=0)
    return tame(body, found or body.constant(body.world.array(state.dtype, state.shape)), 5.0)


def _pass(body: Scope, state: Val) -> Val:
    return body.node("Identity", [state], state)


def _sum(body: Scope, state: Val) -> Val:
    return body.node("Add", [state, _news(body, state)], state)


def _count(body: Scope, state: Val) -> Val:
    return body.node("Add", [state, body.constant(np.array(1, state.dtype))], state)


def _largest(body: Scope, state: Val) -> Val:
    if not body.runs("Max", state.dtype):
        return _sum(body, state)
    return body.node("Max", [state, _news(body, state)], state)


def _blend(body: Scope, state: Val) -> Val:
    """The usual recurrence: the state mixed with news, then squashed."""
    news = _news(body, state)
    if state.dtype == "bool":
        return body.node(body.world.choose(["Xor", "Or", "And"]), [state, news], state)
    if state.dtype == "string":
        return _forget(body, state)
    op = body.world.choose(["Add", "Mul", "Sub"])
    bound = state.bound * news.bound if op == "Mul" else state.bound + news.bound
    mixed = tame(body, body.node(op, [state, news], replace(state, bound=bound)), 5.0)
    if state.dtype in FLOATS and body.world.chance():
        return body.node(body.world.choose(["Tanh", "Sigmoid"]), [mixed], mixed)
    return mixed


def _forget(body: Scope, state: Val) -> Val:
    """A state nobody asked to remember: news alone, brought to the state's shape."""
    news = _news(body, state)
    if news.shape == state.shape:
        return body.node("Identity", [news], news)
    return body.node("Expand", [news, body.shape_constant(state.shape)], replace(news, shape=state.shape))


UPDATES: dict[str, Callable[[Scope, Val], Val]] = {
    "pass": _pass,
    "sum": _sum,
    "count": _count,
    "largest": _largest,
    "blend": _blend,
    "forget": _forget,
}


# Growths with bodies --------------------------------------------------------------------------------------------------


def branch(s: Scope) -> Val | None:
    """An If on something exact, with a node or two in each branch."""
    x = s.pick(lambda v: True)
    judge = s.pick(lambda v: v.exact and v.dtype in FLOATS + INTS and s.runs("Less", v.dtype))
    if x is None or judge is None:
        return None
    if judge.rank and s.runs("ReduceMax", judge.dtype):
        judge = s.node("ReduceMax", [judge], replace(judge, shape=()), keepdims=0)
    if judge.rank:
        return None
    limit = s.constant(s.world.array(judge.dtype, ()))
    condition = s.node("Less", [judge, limit], replace(judge, dtype="bool", bound=1))
    graphs, results = [], []
    for name in ("then_branch", "else_branch"):
        inner = s.inner()
        op = s.world.choose([op for op in ("Identity", "Neg", "Abs", "Not") if s.runs(op, x.dtype)])
        results.append(inner.node(op, [x], x))
        graphs.append(helper.make_graph(inner.nodes, s.world.name(name), [], [value_info(results[-1], None)], inner.initializers))
    return s.node("If", [condition], x, then_branch=graphs[0], else_branch=graphs[1])


def _nested(style: Style) -> Callable[[Scope], Sequence[Val] | None]:
    """A Scan over an axis of a value in sight, its state another value in sight."""
    inner_style = replace(style, max_nodes=2, max_outputs=2, lengths=False)

    def nested_scan(s: Scope) -> Sequence[Val] | None:
        batched = s.world.opset < 9
        x = s.pick(lambda v: v.rank > batched)
        if x is None:
            return None
        axis = 0 if batched else s.world.between(0, x.rank - 1)
        state = s.pick(lambda v: v.rank > 0 and v.shape[0] == x.shape[0] if batched else True)
        states = [state] if state is not None and s.world.chance() else []
        return grow_scan(s, inner_style, states, [Stream(x, axis, s.world.between(0, int(style.directions)))])

    return nested_scan
