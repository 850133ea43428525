"""Protects a node from empty sequences by an If.

One branch of the If runs the node, the other branch returns the results for an empty sequence. For a Scan, the other branch is:

    y = Scan (h0, xs) body(h, x) => f(h, x)    ->    y = an empty stack of values with the sizes of f(h0, zeros)

If the sizes of f(h, x) are unknown, this branch runs one step on zeros to find the sizes. Such a step must not fail, whatever
numbers it computes with. So this is possible only if no node of f can fail on certain numbers, and none has nested graphs.
"""

from collections.abc import Iterable, Iterator

import onnx_ir as ir

from rewrites.analysis.dependence import nodes_computing
from rewrites.analysis.speculation import node_failing_on_elements
from rewrites.analysis.unsliced_types import unsliceable_among
from rewrites.base import since
from rewrites.graph.branches import write_if
from rewrites.graph.builder import Builder
from rewrites.graph.clones import copy_nodes
from rewrites.graph.context import Context
from rewrites.graph.dims import equal, is_one_size
from rewrites.graph.marks import GUARDED, UNSHIELDED, WAS_REFUSED, carry
from rewrites.graph.values import dim_of
from rewrites.loops import ScanOutput, ScanView
from rewrites.ops.rnn.recurrent_node import RecurrentNode, replace_by_nodes
from rewrites.ops.versions import concat, reduce, shape_of, slice_axis, squeeze
from rewrites.recurrent_nodes.expand import initial_states, zeros_of
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch

__all__ = ["can_run_on_zeros", "empty_like", "is_guarded", "step_on_zeros", "guard_with_if"]

_DEEPEST = 8
_ALL_AXES = 1 << 31
_STEPS, _ROWS = 0, 1
_TO_THE_END = (1 << 63) - 1


def is_guarded(ctx: Context, graph: ir.Graph | ir.Function | None, x: ir.Value, axes: Iterable[int]) -> bool:
    """Return True if ``graph`` is a branch of an If that tests the sizes of ``x`` along ``axes``.

    The If may also test the sizes of another value, if these sizes are known to equal the sizes of ``x``.
    """
    owner = None if not isinstance(graph, ir.Graph) or graph is ctx.model.graph else ctx.if_around(graph)
    if owner is None:
        return False
    tested = list(_tested_sizes(owner.inputs[0], 0))
    return all(any(axis in range(*part) and _is_same_size(value, x, axis) for value, part in tested) for axis in axes)


def _tested_sizes(value: ir.Value | None, depth: int) -> Iterator[tuple[ir.Value, tuple[int, int]]]:
    """Yield each tensor whose sizes are used to compute ``value``.

    Each item is a pair (tensor, (start, end)): the sizes of the axes from ``start`` to ``end`` - 1 are used. ``depth``: the number
    of nodes between ``value`` and the condition of the If. The search stops at a certain depth.
    """
    node = None if value is None else value.producer()
    if node is None or depth > _DEEPEST:
        return
    if node.op_type in ("Shape", "Size") and node.domain == "":
        source = node.inputs[0]
        if source is not None and source.shape is None:
            yield source, (0, _ALL_AXES)
        elif source is not None and source.shape is not None:
            rank = len(source.shape)
            start, end = (node.attributes.get_int(name, default) for name, default in (("start", 0), ("end", rank)))
            yield source, (start + rank if start < 0 else start, end + rank if end < 0 else end)
        return
    for operand in node.inputs:
        yield from _tested_sizes(operand, depth + 1)


def _is_same_size(left: ir.Value, right: ir.Value, axis: int) -> bool:
    if left is right:
        return True
    if left.shape is None or right.shape is None or axis >= min(len(left.shape), len(right.shape)):
        return False
    return is_one_size(left.shape.dims[axis]) and equal(left.shape.dims[axis], right.shape.dims[axis])


def guard_with_if(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """Return a patch that puts a recurrent node into an If, or a reason if this is not needed or possible.

    The If skips the node for inputs without steps or rows if onnxruntime does not handle these inputs correctly.
    """
    if view.batch_first or GUARDED.on(view.node):
        return NOTHING_HERE
    free = [axis for axis in _unsafe_axes(view) if _may_be_0(view, axis)]
    keeps_states = not UNSHIELDED.on(view.node) and any(state is not None for state in view.states)
    if free and _STEPS not in free and keeps_states and _may_be_0(view, _STEPS):
        free = [_STEPS, *free]
    if not free or is_guarded(ctx, view.node.graph, view.x, free):
        return NOTHING_HERE
    if ctx.opset < since.EXPAND:
        return NotApplicable("RNN-OPSET", f"an empty sequence needs opset {since.EXPAND}, and the model has opset {ctx.opset}")

    def edit() -> list[ir.Node]:
        b = ctx.builder()
        sizes = _comparable(b, concat(b, [shape_of(b, view.x, axis) for axis in free], 0))
        least = reduce(b, "ReduceMin", sizes, [0], keepdims=True) if len(free) > 1 else sizes
        condition = squeeze(b, b.op("Less", _comparable(b, b.const([0])), least), [0])
        some, none = b.another(), b.another()
        initial = initial_states(none, view)
        results = list(some.like(view.node, view.node.inputs))
        node = some.nodes[0]
        carry(view.node, node)
        GUARDED.put(node, True)
        dims = [shape_of(none, view.x, 0), none.const([view.directions]), shape_of(none, view.x, 1), none.const([view.hidden])]
        empty = zeros_of(none, concat(none, dims, 0), view.dtype or ir.DataType.FLOAT)
        own = {id(state) for state in view.states}
        nothing = [empty, *(none.op("Identity", state) if id(state) in own else state for state in initial)]
        chosen = write_if(b, condition, (some, results), (none, nothing[: len(results)]), view.node.outputs[0].name)
        pairs = zip(view.node.outputs, chosen, strict=True)
        replace_by_nodes(ctx, b, view.node, [value if old.name else None for old, value in pairs])
        return [node]

    what = " or ".join(("steps", "rows")[axis] for axis in free)
    return Patch(f"put it under an If that skips it for sequences without {what}", edit)


def _unsafe_axes(view: RecurrentNode) -> list[int]:
    """Return the axes (0: steps, 1: rows) along which onnxruntime does not handle a size of 0 correctly."""
    bare = view.input("sequence_lens") is None
    if view.kind == "LSTM" and UNSHIELDED.on(view.node):
        return [_ROWS]
    if view.kind != "RNN":
        return [_STEPS, _ROWS] if bare else [_ROWS]
    kept = WAS_REFUSED.on(view.node) and view.states[0] is not None
    return [_STEPS] if bare and kept else []


def _comparable(b: Builder, sizes: ir.Value) -> ir.Value:
    """Return ``sizes`` in a type that Less and ReduceMin support in the opset of ``b``."""
    return b.op("Cast", sizes, to=int(ir.DataType.FLOAT)) if b.opset < since.INTEGER_LESS else sizes


def _may_be_0(view: RecurrentNode, axis: int) -> bool:
    size = dim_of(view.x, axis)
    return not isinstance(size, int) or size == 0


def can_run_on_zeros(loop: ScanView, opset: int) -> bool:
    """Return True if ``step_on_zeros`` supports ``loop``: if a step of ``loop`` can run on zeros."""
    scans = [(scan.outer.dtype, scan.axis) for scan in loop.scan_inputs]
    outputs = [(output.inner.dtype, output.axis) for output in loop.scan_outputs]
    if any(kind in (None, ir.DataType.STRING) or axis < 0 for kind, axis in [*scans, *outputs]):
        return False
    if unsliceable_among((scan.inner for scan in loop.scan_inputs), opset) is not None:
        return False
    return not loop.body.initializers and node_failing_on_elements(loop.body, loop.body.inputs) is None


def step_on_zeros(b: Builder, loop: ScanView, outputs: list[ScanOutput], ctx: Context) -> list[ir.Value]:
    """Write the nodes of one step of ``loop``, with the initial states and with zeros as scanned values.

    Return the values of the step for the scan outputs ``outputs``. Only their sizes are of use.
    """
    instead = {state.inner: state.initial for state in loop.states}
    for scan in loop.scan_inputs:
        shape = b.op("Shape", scan.outer)
        around = [slice_axis(b, shape, 0, scan.axis + 1, _TO_THE_END)]
        if scan.axis:
            around.insert(0, slice_axis(b, shape, 0, 0, scan.axis))
        assert scan.outer.dtype is not None
        instead[scan.inner] = zeros_of(b, concat(b, around, 0), scan.outer.dtype)
    nodes = nodes_computing(loop.body, [output.inner for output in outputs])
    b.nodes.extend(copy_nodes(nodes, instead, ctx.names, "none", named=False))
    return [instead.get(output.inner, output.inner) for output in outputs]


def empty_like(b: Builder, step: ir.Value, axis: int, kind: ir.DataType) -> ir.Value:
    """Return an empty stack of values of one step.

    Args:
        b: The builder that gets the nodes.
        step: A value with the sizes that each stacked value would have.
        axis: The index of the steps axis in the stack. This axis has size 0.
        kind: The type of the elements.
    """
    shape = b.op("Shape", step)
    sizes = [b.const([0]), slice_axis(b, shape, 0, axis, _TO_THE_END)]
    if axis:
        sizes.insert(0, slice_axis(b, shape, 0, 0, axis))
    return zeros_of(b, concat(b, sizes, 0), kind)
