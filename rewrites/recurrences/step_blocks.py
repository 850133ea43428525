"""A loop over blocks of steps around a loop over the steps of each, with the steps that are left over after it.

    Scan(s0, xs)    ->    If (there are ``length`` steps or more; and in an If of its own: states are no wider than was assumed)
                              s1, ys = Scan(s0, xs[:n] as blocks) of Scan(s, block)        # n: a multiple of ``length``
                              If (more are left) then the Scan on s1 and xs[n:], else s1
                          else the Scan as it was

The loop over the steps of a block has a known number of steps, for the rules that need it. All three loops have the directions of
the original. If inputs are scanned backwards, the blocks are the last rows and the rest is the first.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.fission.separate import copied, tried
from rewrites.graph.branches import say_has_steps
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import with_axes, without_axis
from rewrites.graph.marks import ASSUMED_SIZE, ONE_BLOCK
from rewrites.graph.values import static_dims
from rewrites.loops import ScanInput, ScanOutput, ScanView, State, make_scan
from rewrites.ops.versions import concat, reshape, slice_axis
from rewrites.recurrences.fallback import WrittenForm, guard_with_fallback, sizes_at_most, write_fallback
from rewrites.recurrences.results import is_used
from rewrites.scan_form.step_counts import most_steps

__all__ = ["StepCut", "put_in_blocks", "tried_on_a_block"]

_END = 2**63 - 1


@dataclass(frozen=True)
class StepCut:
    """``length``: the steps of a block. ``assumed``: the limit of each unknown size; None if no size matters."""

    length: int
    assumed: int | None

    def widest(self, loop: ScanView, ctx: Context) -> int | None:
        """Return how many numbers a state of ``loop`` has at most; None for any number."""
        if self.assumed is None:
            return None
        options = replace(ctx.options, assumed_dim=self.assumed)
        return max(StepSizes.of(loop, replace(ctx, options=options)).elements(state.inner) for state in loop.states)


@contextmanager
def tried_on_a_block(loop: ScanView, cut: StepCut, ctx: Context) -> Iterator[tuple[ScanView, Context]]:
    """Return the loop over the steps of one block, all of whose results are wanted, and the context to try rules on it with."""
    node = _over_a_block(loop, cut, _begun(loop, ctx), ctx)[0]
    with tried(node, ctx) as values:
        assert isinstance(node.graph, ir.Graph)
        node.graph.outputs.extend(node.outputs)
        yield values


def put_in_blocks(loop: ScanView, cut: StepCut, ctx: Context) -> list[ir.Node]:
    """Change ``loop`` and return the new loops, that over the steps of a block first."""
    build, inside = ctx.builder(), ctx.builder()
    steps = most_steps(build, loop)
    are_enough = build.op("Less", build.const([cut.length - 1]), steps)
    values, inner_loops = _in_blocks(loop, cut, steps, inside, ctx)
    are_narrow = ctx.builder()
    is_fit = _are_narrow(loop, cut, are_narrow, ctx)
    if is_fit is not None:
        wide = ctx.builder()
        as_it_was = copied(loop, loop.states, ctx)
        wide.nodes.append(as_it_was)
        kept = (wide, as_it_was.outputs)
        values = write_fallback(are_narrow, is_fit, (inside, values), kept, as_it_was, loop.node.name, ctx)
        inside, inner_loops = are_narrow, [*inner_loops, as_it_was]
    results = {old: value for old, value in zip(loop.node.outputs, values, strict=True) if is_used(old)}
    return [*inner_loops, guard_with_fallback(loop, WrittenForm(build, results, (are_enough, inside)), ctx)]


def _are_narrow(loop: ScanView, cut: StepCut, build: Builder, ctx: Context) -> ir.Value | None:
    """Return the flag that states are no wider than assumed; None if that is known."""
    widest = cut.widest(loop, ctx)
    if widest is None:
        return None
    return sizes_at_most(build, [(state.initial, widest) for state in loop.states if static_dims(state.initial) is None])


def _in_blocks(
    loop: ScanView, cut: StepCut, steps: ir.Value, inside: Builder, ctx: Context
) -> tuple[Sequence[ir.Value], list[ir.Node]]:
    """Put the loops over blocks and over what is left into ``inside``; return their results, and the loops."""
    length = inside.const([cut.length])
    blocks = inside.op("Div", steps, length)
    end = inside.op("Mul", blocks, length)
    inner, outer = _over_blocks(loop, cut, blocks, end, inside, ctx)
    finals = list(outer.outputs[: len(loop.states)])
    stacks = [_joined(inside, stack, end) for stack in outer.outputs[len(loop.states) :]]
    rest, none = ctx.builder(), ctx.builder()
    left = _rest(loop, finals, end, rest, ctx)
    whole = list(left.outputs[: len(finals)])
    for output, first, then in zip(loop.scan_outputs, stacks, left.outputs[len(finals) :], strict=True):
        whole.append(rest.op("Concat", *((then, first) if output.reverse else (first, then)), axis=0))
    is_left = inside.op("Less", end, steps)
    unchanged = [none.op("Identity", value) for value in (*finals, *stacks)]
    inner_loops = write_fallback(inside, is_left, (rest, whole), (none, unchanged), left, loop.node.name, ctx)
    say_has_steps(left.graph)
    return inner_loops, [inner, outer, left]


def _begun(loop: ScanView, ctx: Context) -> list[ir.Value]:
    """Return new values for what the states are before a block."""
    return [
        ir.Value(name=ctx.names.fresh(f"{state.inner.name}_begun"), type=state.initial.type, shape=state.initial.shape)
        for state in loop.states
    ]


def _over_a_block(loop: ScanView, cut: StepCut, states: Sequence[ir.Value], ctx: Context) -> tuple[ir.Node, list[ScanInput]]:
    """Return a Scan over the steps of a block, from ``states`` on, and its scan inputs, whose outer sides are new."""
    scans = []
    for scan in loop.scan_inputs:
        shape = with_axes(without_axis(scan.outer.shape, 0), 0, cut.length)
        block = ir.Value(name=ctx.names.fresh(f"{scan.inner.name}_block"), type=scan.outer.type, shape=shape)
        scans.append(replace(scan, outer=block))
    begun = [replace(state, initial=value) for state, value in zip(loop.states, states, strict=True)]
    over = replace(loop, scan_inputs=tuple(scans))
    node = copied(over, begun, ctx)
    ONE_BLOCK.put(node, True)
    if cut.assumed is not None:
        ASSUMED_SIZE.put(node, cut.assumed)
    return node, scans


def _over_blocks(
    loop: ScanView, cut: StepCut, blocks: ir.Value, end: ir.Value, build: Builder, ctx: Context
) -> tuple[ir.Node, ir.Node]:
    """Put a Scan over the blocks of all steps before ``end`` into ``build``; return that inside it, and itself."""
    names, begun = ctx.names, _begun(loop, ctx)
    inner, scans = _over_a_block(loop, cut, begun, ctx)
    states = [
        State(state.initial, mine, result, None) for state, mine, result in zip(loop.states, begun, inner.outputs, strict=False)
    ]
    heads = [_sliced(build, scan, None, end) for scan in loop.scan_inputs]
    read = [
        ScanInput(_cut(build, head, cut.length, blocks), block.outer, reverse=block.reverse)
        for head, block in zip(heads, scans, strict=True)
    ]
    body = ir.Graph([], [], nodes=[inner], name=names.fresh("block"))
    stacks = [
        ScanOutput(result, None, reverse=output.reverse)
        for result, output in zip(inner.outputs[len(states) :], loop.scan_outputs, strict=True)
    ]
    outer = make_scan(names, body, states, read, stacks, loop.node.name or "scan")
    for result, stack in zip(inner.outputs[len(states) :], outer.outputs[len(states) :], strict=True):
        stack.shape = with_axes(result.shape, 0, None)
    build.nodes.append(outer)
    return inner, outer


def _rest(loop: ScanView, states: Sequence[ir.Value], start: ir.Value, build: Builder, ctx: Context) -> ir.Node:
    """Put a copy of ``loop`` into ``build`` that goes on from ``states`` at step ``start``."""
    scans = []
    for scan in loop.scan_inputs:
        scans.append(replace(scan, outer=_sliced(build, scan, start, None)))
    begun = [replace(state, initial=value) for state, value in zip(loop.states, states, strict=True)]
    node = copied(replace(loop, scan_inputs=tuple(scans)), begun, ctx)
    build.nodes.append(node)
    return node


def _sliced(build: Builder, scan: ScanInput, start: ir.Value | None, end: ir.Value | None) -> ir.Value:
    """Return what ``scan`` sees from step ``start``, not 0, or the first on, before step ``end`` or to the last."""
    if scan.reverse:
        start, end = (None if step is None else build.op("Neg", step) for step in (end, start))
    first = build.const([0]) if start is None else start
    rows = build.op("Slice", scan.outer, first, build.const([_END]) if end is None else end, build.const([0]))
    rows.shape = with_axes(without_axis(scan.outer.shape, 0), 0, None)
    return rows


def _cut(build: Builder, value: ir.Value, length: int, blocks: ir.Value) -> ir.Value:
    """Return ``value`` [n, ...] as [blocks, length, ...]."""
    row = without_axis(value.shape, 0)
    dims = None if row is None else row.dims
    if dims is not None and all(isinstance(dim, int) and dim for dim in dims):
        return reshape(build, value, [-1, length, *(int(dim) for dim in dims if isinstance(dim, int))])
    sizes = slice_axis(build, build.op("Shape", value), 0, 1, _END)
    return build.op("Reshape", value, concat(build, [blocks, build.const([length]), sizes], 0), allowzero=1)


def _joined(build: Builder, stack: ir.Value, end: ir.Value) -> ir.Value:
    """Return ``stack`` [blocks, length, ...] as [n, ...]."""
    dims = None if stack.shape is None else stack.shape.dims[2:]
    if dims is not None and all(isinstance(dim, int) and dim for dim in dims):
        return reshape(build, stack, [-1, *(int(dim) for dim in dims if isinstance(dim, int))])
    sizes = slice_axis(build, build.op("Shape", stack), 0, 2, _END)
    return build.op("Reshape", stack, concat(build, [end, sizes], 0), allowzero=1)
