"""A Loop with a known trip count becomes a Scan.

    Loop(M, true, h0) body(i, c, h) => (c, f(h, Gather(X, i)))    ->    Scan(h0, X) body(h, x) => f(h, x)

Conditions: the trip count M is known before the loop. The condition never stops the loop early. The states are tensors whose shapes
are known not to change. The rank of each result is known.

If M may be 0, the Scan is put into a branch of an If. The other branch returns the initial states and empty results of the shapes
that onnxruntime returns. If a Gather reads rows of an outer tensor in ascending or descending order, the rows become a scan input.
If the step number has other users, it becomes a scan input, too. A Gather of rows of strings stays, because onnxruntime's Gather
copies only the first string of each row, unlike a scan input.

Works around ORT-SCAN-NO-STEPS, ORT-GATHER-STRINGS and ORT-LOOP-NO-STEPS-SIZES.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import unread_nodes, varying_values
from rewrites.analysis.induction.affine_expression import STEP, AffineExpression, at_least, surely_equal
from rewrites.analysis.induction.emission import emit, exceeds
from rewrites.analysis.induction.induction_variables import integers_of, trip_count
from rewrites.analysis.induction.integers import Integers
from rewrites.analysis.shapes.refine import dim_of_size, shapes_of_kept_states
from rewrites.analysis.shapes.sizes_without_steps import known_sizes
from rewrites.base.report import PatchOutcome
from rewrites.graph.branches import SOME_STEPS, of_a_size_not_inferred, say_has_steps
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import is_vague, with_axes, without_axis
from rewrites.graph.node_inference import put_shapes
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import dim_of, is_read, rank_of
from rewrites.loops import Loop, LoopView, ScanInput, ScanOutput, ScanView
from rewrites.loops.own_results import give_own_nodes
from rewrites.loops.rebuild import make_scan, replace_node
from rewrites.ops.versions import axis_of, count_up, gather, reshape, slice_axis, unsqueeze
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "RowRead", "as_vector", "check", "row_reads"]


@dataclass(frozen=True)
class RowRead:
    """A Gather of ``source`` along ``axis`` at an index that changes by one per step.

    The index is ``start`` in the first step. In each later step, it increases by one, or decreases by one if ``reverse``. In the
    result, ``unit_axes`` axes of size 1 replace ``axis``.
    """

    node: ir.Node
    source: ir.Value
    axis: int
    start: AffineExpression
    reverse: bool
    unit_axes: int

    def lowest_index(self, steps: AffineExpression) -> AffineExpression:
        """Return the lowest index that ``steps`` steps read."""
        return self.start - steps + 1 if self.reverse else self.start

    @property
    def length(self) -> AffineExpression:
        """Return the size of ``source`` along ``axis``."""
        return AffineExpression.dim(self.source, self.axis)

    def exceeds_source(self, steps: AffineExpression) -> bool:
        """Return True if ``steps`` steps are known to read beyond the last row of ``source``."""
        after = self.lowest_index(steps) + steps - self.length
        return after.number is not None and after.number > 0

    def emit_rows(self, b: Builder, steps: AffineExpression, count: ir.Value) -> ir.Value:
        """Emit the rows that ``steps`` steps read, in the order that they have in the source.

        If the source has too few rows, the new nodes fail, as the Gather in the loop does. ``count``: the number of steps, as an
        int64 vector of one element.
        """
        lowest_index, length = self.lowest_index(steps), self.length
        if lowest_index.number == 0 and surely_equal(steps, length):
            return self.source
        if lowest_index.number is not None and steps.number is not None and length.number is not None:
            return slice_axis(b, self.source, self.axis, lowest_index.number, lowest_index.number + steps.number)
        indices = count_up(b, count, as_indices=True)
        if lowest_index.number != 0:
            indices = b.op("Add", indices, emit(b, lowest_index))
        return gather(b, self.source, indices, self.axis)


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if a Scan can replace the loop."""
    if isinstance(loop, ScanView):
        return NOTHING_HERE
    if ctx.opset < 9:
        return NotApplicable("LOOP-OPSET", f"opset {ctx.opset} has only the batched Scan")
    if not loop.never_stops_early:
        detail = "the condition is computed in the body, so the trip count is not known before the loop"
        return NotApplicable("LOOP-CONDITION", detail)
    steps, limit = trip_count(loop, ctx.opset), loop.limit
    if steps is None or limit is None:
        return NotApplicable("LOOP-TRIP-COUNT", "there is no trip count, and the condition never turns false")
    if steps.number is not None and steps.number < 1:
        return NotApplicable("LOOP-EMPTY", f"the trip count is {max(0, steps.number)}")
    if any(not isinstance(value.type, ir.TensorType | None) for value in (*loop.body.inputs, *loop.body.outputs)):
        return NotApplicable("LOOP-SEQUENCE", "a state or result is a sequence or optional, which a Scan does not carry")
    reads = row_reads(loop, integers_of(loop, ctx.opset, steps), steps)
    for read in reads:
        if read.exceeds_source(steps):
            length, first, count = dim_of(read.source, read.axis), read.lowest_index(steps).number or 0, steps.number or 0
            detail = f"'{read.source.name}' has {length} rows, but is read at {first}..{first + count - 1}"
            return NotApplicable("LOOP-OUT-OF-RANGE", detail)
    empty = [(0, *(size or 0 for size in known_sizes(output) or ())) for output in loop.scan_outputs]
    shapes = shapes_of_kept_states(loop, ctx)
    if isinstance(shapes, NotApplicable):
        return shapes

    def edit() -> list[ir.Node]:
        put_shapes(shapes)
        build, body = ctx.builder(), loop.body
        count = build.const([steps.number]) if steps.number is not None else as_vector(build, limit)
        scans = [_scan_input(read, read.emit_rows(build, steps, count), ctx) for read in reads]
        body.outputs[:] = body.outputs[1:]
        body.inputs[:2] = []
        inside = ctx.builder()
        for read, scan in zip(reads, scans, strict=True):
            axes = range(read.axis, read.axis + read.unit_axes)
            replace_value(read.node.outputs[0], unsqueeze(inside, scan.inner, list(axes)), ctx.names)
        inside.prepend_to(body)
        remove_nodes(read.node for read in reads)
        varying = varying_values(body, [loop.iteration])
        remove_nodes(dead for dead in unread_nodes(body) if any(value in varying for value in dead.outputs))
        replace_value(loop.condition_in, ctx.constants.value(loop.inputs_in_step(0)[loop.condition_in]), ctx.names)
        if not scans or is_read(loop.iteration):
            scans.append(_scan_step_numbers(loop, build, count, steps))
        # read the outputs again, because rows and conditions that the body returned were replaced
        states = [replace(state, next=value) for state, value in zip(loop.states, body.outputs, strict=False)]
        outputs = [ScanOutput(value, None) for value in body.outputs[len(states) :]]
        node = make_scan(ctx.names, body, states, scans, outputs, loop.node.name or "scan")
        for output, value in zip(outputs, node.outputs[len(states) :], strict=True):
            value.shape = with_axes(output.inner.shape, 0, dim_of_size(steps))
        give_own_nodes(body, ctx.names)
        del loop.node.attributes["body"]
        if at_least(steps, 1):
            build.insert_before(loop.node)
            _complete_shapes(loop, node)
            replace_node(loop.node, node, list(zip(loop.node.outputs, node.outputs, strict=True)), ctx.names)
            return [node]
        guarded, results = _guard_with_if(ctx, loop, node, build, limit, empty)
        replace_node(loop.node, guarded, results, ctx.names)
        return [node]

    assumed = f"the trip count is computed in floating point: assumed to be exact, which holds up to {steps.exact_to} steps"
    notes = [assumed] if steps.exact_to is not None and steps.number is None else []
    if at_least(steps, 1):
        return Patch(f"made the loop of {steps.number or 'known'} steps a Scan", edit, tuple(notes))
    notes.append("another branch returns the results of a loop without steps")
    return Patch("made the loop a Scan for one step or more", edit, tuple(notes), PatchOutcome(under_if=True))


def _scan_input(read: RowRead, rows: ir.Value, ctx: Context) -> ScanInput:
    """Return a new scan input of ``rows`` that replaces the Gather of ``read``."""
    shape = rows.shape if rows.shape is not None else read.source.shape
    row = without_axis(shape, read.axis) or ir.Shape([])
    inner = ir.Value(name=ctx.names.fresh(f"{read.node.outputs[0].name}_in"), type=read.source.type, shape=row)
    return ScanInput(rows, inner, read.axis, read.reverse)


def _scan_step_numbers(loop: LoopView, build: Builder, count: ir.Value, steps: AffineExpression) -> ScanInput:
    """Return a scan input that provides the step number. ``count``, ``steps``: the trip count."""
    counts = count_up(build, count)
    if steps.number is not None:
        counts.shape = ir.Shape([steps.number])
    single = rank_of(loop.iteration) == 1
    loop.iteration.type, loop.iteration.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([1] if single else [])
    return ScanInput(unsqueeze(build, counts, [1]) if single else counts, loop.iteration)


def _complete_shapes(loop: LoopView, node: ir.Node) -> None:
    """Copy the shapes of the results of ``node`` to those results of the loop that have incomplete shapes.

    The shapes of graph outputs stay.
    """
    for old, new in zip(loop.node.outputs, node.outputs, strict=True):
        if new.shape is not None and not old.is_graph_output() and (old.shape is None or is_vague(old.shape)):
            old.shape = new.shape


def _guard_with_if(
    ctx: Context, loop: LoopView, scan: ir.Node, build: Builder, steps: ir.Value, empty_shapes: Sequence[tuple[int, ...]]
) -> tuple[ir.Node, list[tuple[ir.Value, ir.Value]]]:
    """Return (If, replacements). The new If runs ``scan`` and the nodes of ``build`` if there are steps.

    ``replacements``: pairs of a result of the loop and the result of the If that replaces it. ``steps``: the trip count.
    ``empty_shapes``: the shapes of the stacked results if the loop runs zero steps.
    """
    names = ctx.names
    used = [i for i, value in enumerate(loop.node.outputs) if is_read(value)] or [0]
    with_steps = ir.Graph([], [scan.outputs[i] for i in used], nodes=[scan], name=names.fresh(SOME_STEPS))
    say_has_steps(with_steps)
    build.insert_before(scan)
    values: list[ir.Value] = [state.initial for state in loop.states]
    for output, shape in zip(loop.scan_outputs, empty_shapes, strict=True):
        dtype = output.inner.dtype or ir.DataType.FLOAT
        values.append(ctx.constants.value(np.zeros(shape, object if dtype == ir.DataType.STRING else dtype.numpy()), "nothing"))
    before, nothing = ctx.builder(), ctx.builder()
    has_steps = exceeds(before, steps, before.const(np.array(0, np.int64)))
    before.insert_before(loop.node)
    copies = []
    for i in used:
        value = values[i] if i < len(loop.states) else of_a_size_not_inferred(nothing, values[i], has_steps)
        copy = ir.Value(name=names.fresh(f"{value.name}_out"), type=value.type, shape=value.shape)
        nothing.nodes.append(ir.Node("", "Identity", [value], outputs=[copy], name=names.fresh("node_Identity")))
        copies.append(copy)
    without_steps = ir.Graph([], copies, nodes=nothing.nodes, name=names.fresh("no_steps"))
    outputs = [ir.Value(name=names.fresh(f"{scan.outputs[i].name}_or_none"), type=scan.outputs[i].type) for i in used]
    attributes = [ir.AttrGraph("then_branch", with_steps), ir.AttrGraph("else_branch", without_steps)]
    node = ir.Node("", "If", [has_steps], attributes, outputs=outputs, name=names.fresh(f"{loop.node.name or 'loop'}_if"))
    return node, [(loop.node.outputs[i], value) for i, value in zip(used, outputs, strict=True)]


def row_reads(loop: LoopView, integers: Integers, steps: AffineExpression) -> list[RowRead]:
    """Return the Gathers of outer tensors at an index that changes by one per step and is never negative."""
    reads = (_match_row_read(node, loop, integers) for node in loop.body)
    return [read for read in reads if read is not None and at_least(read.lowest_index(steps), 0, steps)]


def _match_row_read(node: ir.Node, loop: LoopView, integers: Integers) -> RowRead | None:
    """Return the Gather ``node`` as a RowRead if its index changes by one per step, else None."""
    if node.op_type != "Gather" or node.domain != "":
        return None
    source, indices = node.inputs[0], integers.of(node.inputs[1])
    if source is None or source.graph is loop.body or source.shape is None or not len(source.shape):
        return None
    if indices is None or indices.const.size != 1 or abs(indices.factor(STEP)) != 1 or indices.exact_to is not None:
        return None
    if source.dtype == ir.DataType.STRING and len(source.shape) > 1:  # such a Gather copies one string of each row
        return None
    index = indices.reshaped(())
    axis = axis_of(node, 0, rank_of(source))
    return RowRead(node, source, axis, index.without(STEP), index.factor(STEP) < 0, indices.const.ndim)


def as_vector(b: Builder, number: ir.Value) -> ir.Value:
    """Reshape a one-element tensor to a vector."""
    return number if rank_of(number) == 1 else reshape(b, number, [1])


RULE = Rule("loop-to-scan", "loop_form", "loop", check)
