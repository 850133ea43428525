"""Whether a Loop's states keep their shapes from step to step, as a Scan's have to.

One inference of the body, from the shapes of the initial values, tells: if the body gives the same shapes back, induction gives
them for all steps.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import onnx_ir as ir

from rewrites.analysis.induction.integers import Integers
from rewrites.analysis.shapes.refine import infer_sharply, sharpen
from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.context import Context
from rewrites.graph.learned_shapes import LearnedShapes, put_shapes, shapes_of, taken_back
from rewrites.graph.values import rank_of
from rewrites.graph.walk import all_nodes, inner_graphs, node_graphs
from rewrites.loops import LoopView, ScanView, State, is_loop, view
from rewrites.loops.captures import captured_values

__all__ = ["settled_beside", "unsettled_shapes"]


def unsettled_shapes(loop: LoopView, ctx: Context) -> NotApplicable | LearnedShapes:
    """Say which state may change its shape, or which result has no known rank; where all is settled, return the shapes found.

    All values have the shapes they had. A declared shape proves nothing of a state, and counts for other values only where nothing
    can be inferred. Where too little is known, what the loop is given is looked at again.
    """
    before = shapes_of(_values_in(loop.body))
    refusal, sharpened = _with_second_look(loop, ctx, {})
    learned = taken_back({**sharpened, **before})
    return learned if refusal is None else refusal


@contextmanager
def settled_beside(loop: LoopView, ctx: Context, growing: Mapping[ir.Value, int | None]) -> Iterator[bool]:
    """Tell whether all states keep their shapes beside sequences and those of ``growing``, which may change along the axis given.

    Where they do, the values of the body have the shapes found as long as the context lasts, and those they had afterwards.
    """
    before = shapes_of(_values_in(loop.body))
    sequences = {state.inner: None for state in loop.states if not isinstance(state.initial.type, ir.TensorType)}
    refusal, sharpened = _with_second_look(loop, ctx, {**sequences, **growing})
    try:
        yield refusal is None
    finally:
        put_shapes({**sharpened, **before})


def _values_in(body: ir.Graph) -> list[ir.Value]:
    values = [value for graph in (body, *inner_graphs(body)) for value in graph.inputs]
    return values + [value for node in all_nodes(body) for value in node.outputs]


def _with_second_look(
    loop: LoopView, ctx: Context, growing: Mapping[ir.Value, int | None]
) -> tuple[NotApplicable | None, LearnedShapes]:
    """Look at the loop, and if need be again; return why it is not settled, and what shapes of values outside were."""
    refusal, sharpened = _unsettled(loop, ctx, growing), dict[ir.Value, ir.Shape | None]()
    if refusal is not None:
        sharpened = sharpen([*captured_values(loop.body), *(state.initial for state in loop.states)], ctx)
        refusal = _unsettled(loop, ctx, growing) if sharpened else refusal
    return refusal, sharpened


def _unsettled(loop: LoopView, ctx: Context, growing: Mapping[ir.Value, int | None]) -> NotApplicable | None:
    values = [value for node in all_nodes(loop.body) for value in node.outputs]
    inputs = [value for graph in (loop.body, *inner_graphs(loop.body)) for value in graph.inputs]
    before = {value: value.shape for value in [*inputs, *values]}
    for value in values:
        value.shape = None
    for state in loop.states:
        state.inner.shape = _open(state.initial.shape, growing.get(state.inner))
    _infer(loop.body, ctx)
    refusal = _changing_state([state for state in loop.states if state.inner not in growing])
    for value in values:
        value.shape = before[value] if value.shape is None else value.shape
    vague = next((output.inner for output in loop.scan_outputs if rank_of(output.inner) is None), None)
    if refusal is None and vague is not None:
        refusal = NotApplicable("RANK-UNKNOWN", f"the rank of the result '{vague.name}' is not known, which a Scan needs")
    if refusal is not None:
        for value, shape in before.items():
            value.shape = shape
    return refusal


def _infer(graph: ir.Graph, ctx: Context) -> None:
    """Infer the shapes in ``graph`` node by node; the results of a nested Loop stay open.

    Sizes have names only where they are those of values outside, or of initial values, so a name is one size in every step.
    """
    for node in graph:
        loop = view(node, ctx.opset) if is_loop(node) else None
        if isinstance(loop, ScanView):
            _infer_scan(loop, ctx)
        elif loop is None and node.op_type == "If" and node.domain == "":
            branches = node_graphs(node)
            for branch in branches:
                _infer(branch, ctx)
            for value, *given in zip(node.outputs, *(branch.outputs for branch in branches), strict=True):
                value.shape = _common([one.shape for one in given])
        elif loop is None:
            infer_sharply(node, ctx, Integers(ctx.opset, graph, same_sizes=True))


def _infer_scan(loop: ScanView, ctx: Context) -> None:
    for state in loop.states:
        state.inner.shape = state.initial.shape
        if state.final is not None:
            state.final.shape = state.initial.shape
    for scan in loop.scan_inputs:
        if scan.outer.shape is not None:
            scan.inner.shape = ir.Shape([dim for i, dim in enumerate(scan.outer.shape.dims) if i != scan.axis])
    _infer(loop.body, ctx)
    for output in loop.scan_outputs:
        if output.outer is not None and output.inner.shape is not None:
            dims = list(output.inner.shape.dims)
            axis = output.axis % (len(dims) + 1)
            output.outer.shape = ir.Shape([*dims[:axis], loop.steps, *dims[axis:]])


def _common(shapes: list[ir.Shape | None]) -> ir.Shape | None:
    """Return what is known of a value that has one of ``shapes``."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes) or len({len(shape) for shape in known}) != 1:
        return None
    columns = zip(*(shape.dims for shape in known), strict=True)
    return ir.Shape([column[0] if all(_equal(column[0], dim) for dim in column) else None for column in columns])


def _open(shape: ir.Shape | None, axis: int | None) -> ir.Shape | None:
    return shape if shape is None or axis is None else ir.Shape([None if i == axis else dim for i, dim in enumerate(shape.dims)])


def _changing_state(states: Sequence[State]) -> NotApplicable | None:
    for state in states:
        given, back = state.initial.shape, state.next.shape
        if given is None or back is None or not _provably_equal(given, back):
            detail = f"state '{state.inner.name}' starts with the shape {given}, and the body gives {back}"
            return NotApplicable("LOOP-STATE-SHAPE", detail)
    return None


def _provably_equal(one: ir.Shape, other: ir.Shape) -> bool:
    return len(one) == len(other) and all(map(_equal, one.dims, other.dims))


def _equal(left: int | ir.SymbolicDimProtocol, right: int | ir.SymbolicDimProtocol) -> bool:
    if isinstance(left, int) or isinstance(right, int):
        return left == right
    return left.value is not None and left.value == right.value
