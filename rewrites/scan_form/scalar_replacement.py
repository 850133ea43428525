"""A state that concatenates several values is split into one state per value.

    Scan(hc0, xs) body(hc, x) => Concat(f(h, x), g(c, x))  with h, c = Split(hc)
    ->    Scan(h0, c0, xs) body(h, c, x) => (f(h, x), g(c, x))    with h0, c0 = Split(hc0)

Conditions:

* The next value of the state is a Concat of parts of known sizes.
* The body reads complete parts of the state by a Split, or by a Slice or Gather at constant indices. Other nodes may read the whole
  state: after the rewrite, they read a Concat of the parts.
* The loop is no opset-8 Scan, whose states have an additional batch axis outside the loop.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import const_array, dim_of, is_read, producer_of, rank_of, through_identity
from rewrites.loops import Loop, LoopView, State, rebuild
from rewrites.loops.own_results import give_own_nodes
from rewrites.ops.versions import DYNAMIC, axis_of, concat, slice_axis, slice_spec, split_spec, squeeze
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


@dataclass(frozen=True)
class _PartRead:
    """A ``value`` in the body that consists of the parts ``start`` to ``stop`` - 1 of the state.

    ``squeezed``: True if the value lacks the axis along which the parts are concatenated.
    """

    value: ir.Value
    start: int
    stop: int
    squeezed: bool = False


@dataclass(frozen=True)
class _PackedState:
    """A state that is a Concat of several parts.

    Args:
        state: The state.
        axis: The axis of the Concat.
        parts: The next value of each part.
        ends: The index along ``axis`` at which each part ends.
        reads: The values in the body that consist of parts of the state.
    """

    state: State
    axis: int
    parts: tuple[ir.Value, ...]
    ends: tuple[int, ...]
    reads: tuple[_PartRead, ...]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the body concatenates a state from parts and reads these parts separately."""
    if loop.batched:
        return NOTHING_HERE
    packed = next(filter(None, (_match_packed_state(loop, state, ctx.opset) for state in loop.states)), None)
    if packed is None:
        return NOTHING_HERE
    state, starts = packed.state, (0, *packed.ends)
    index = loop.states.index(state)

    def edit() -> list[ir.Node]:
        before, inside, after = ctx.builder(), ctx.builder(), ctx.builder()
        parts = []
        for part, (start, end) in zip(packed.parts, itertools.pairwise(starts), strict=True):
            initial = slice_axis(before, state.initial, packed.axis, start, end)
            inner = ir.Value(name=ctx.names.fresh(f"{state.inner.name}_part"), type=part.type, shape=part.shape)
            parts.append(State(initial, inner, part, None))
        replacements = {read.value: _emit_read(inside, parts[read.start : read.stop], packed.axis, read) for read in packed.reads}
        states = [*loop.states[:index], *parts, *loop.states[index + 1 :]]
        states = [replace(each, next=replacements.get(each.next, each.next)) for each in states]
        outputs = [replace(output, inner=replacements.get(output.inner, output.inner)) for output in loop.scan_outputs]
        lead = loop.body.outputs[:1] if isinstance(loop, LoopView) else []
        loop.body.outputs[:] = [*lead, *(each.next for each in states), *(output.inner for output in outputs)]
        for old, new in replacements.items():
            replace_value(old, new, ctx.names)
        remove_nodes([node for old in replacements if (node := old.producer()) is not None and node.graph is not None])
        if state.inner.uses():
            replace_value(state.inner, concat(inside, [part.inner for part in parts], packed.axis), ctx.names)
        inside.prepend_to(loop.body)
        whole: ir.Value | None = None
        if state.final is not None and is_read(state.final):
            whole = concat(after, [part.initial for part in parts], packed.axis)
            after.insert_after(loop.node)
            replace_value(state.final, whole, ctx.names)
        before.insert_before(loop.node)
        node = rebuild(loop, ctx.names, states=states, scan_outputs=outputs)
        joining = None if whole is None else whole.producer()
        if joining is not None:
            for i in range(len(parts)):
                joining.replace_input_with(i, node.outputs[index + i])
        give_own_nodes(loop.body, ctx.names)
        return [node]

    return Patch(f"made the state '{state.inner.name}' the {len(packed.parts)} it consists of", edit)


def _emit_read(b: Builder, parts: Sequence[State], axis: int, read: _PartRead) -> ir.Value:
    """Emit the value of ``read`` from ``parts``, the states that replace the parts it consists of."""
    whole = concat(b, [part.inner for part in parts], axis)
    return squeeze(b, whole, [axis]) if read.squeezed else whole


def _match_packed_state(loop: Loop, state: State, opset: int) -> _PackedState | None:
    """Return ``state`` as a _PackedState if the body concatenates it and reads only complete parts."""
    node, rank = producer_of(through_identity(state.next), "Concat"), rank_of(state.inner)
    if node is None or node.graph is not loop.body or not rank:
        return None
    axis = axis_of(node, 0, rank)
    parts = [value for value in node.inputs if value is not None]
    sizes = [size for value in parts if isinstance(size := dim_of(value, axis), int)]
    if len(parts) < 2 or len(sizes) != len(parts) or 0 in sizes or state.inner.is_graph_output():
        return None
    ends = tuple(itertools.accumulate(sizes))
    bounds = {end: number for number, end in enumerate((0, *ends))}
    reads = list[_PartRead]()
    for user, _ in state.inner.uses():
        if user.graph is not loop.body:
            return None
        for value, start, stop, squeezed in _slices_read_by(user, state.inner, axis, rank, ends[-1], opset):
            if start not in bounds or stop not in bounds or start >= stop:
                return None
            reads.append(_PartRead(value, bounds[start], bounds[stop], squeezed))
    return _PackedState(state, axis, tuple(parts), ends, tuple(reads)) if reads else None


def _slices_read_by(
    node: ir.Node, state_value: ir.Value, axis: int, rank: int, length: int, opset: int
) -> Iterator[tuple[ir.Value, int, int, bool]]:
    """Yield (value, start, stop, squeezed) for each output of ``node`` that is a slice of ``state_value``.

    ``value`` is ``state_value[start:stop]`` along ``axis``, and lacks this axis if ``squeezed``. An unknown ``start`` or ``stop``
    is negative. ``length``: the size of ``axis``.
    """
    if node.domain != "" or node.inputs[0] is not state_value:
        return
    if node.op_type == "Split":
        spec = split_spec(node, opset, rank)
        sizes = spec.sizes_of(length) if spec.axis == axis else None
        ends = [-1] * len(node.outputs) if sizes is None else list(itertools.accumulate(sizes))
        yield from ((value, start, end, False) for value, start, end in zip(node.outputs, [0, *ends], ends, strict=False))
    elif node.op_type == "Slice":
        cut = slice_spec(node, opset, rank)
        is_supported = cut is not DYNAMIC and cut.axes == (axis,) and cut.steps == (1,)
        begin, end, _ = slice(cut.starts[0], cut.ends[0]).indices(length) if cut is not DYNAMIC and is_supported else (-1, -1, 1)
        yield node.outputs[0], begin, end, False
    elif node.op_type == "Gather" and axis_of(node, 0, rank) == axis:
        index = const_array(node.inputs[1])
        start = int(index) % length if index is not None and index.ndim == 0 and -length <= int(index) < length else -2
        yield node.outputs[0], start, start + 1, True


RULE = Rule("scalar-replacement", "scan_form", "loop", check, formerly="packed-states")
