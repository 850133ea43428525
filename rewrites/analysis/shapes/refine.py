"""Infers sizes that the first inference did not find, and tests if a Loop's states keep their shapes.

There are three sources of sizes:

- If the model computes a shape from other shapes (``Expand``, ``ConstantOfShape``, ``Reshape`` to a ``Concat`` of dimensions), the
  sizes are found as affine expressions.
- The results of a Scan have the sizes that its body returns.
- All other nodes are inferred again by onnx, from the shapes that are known by now.

To test the states of a Loop, its body is inferred once from the shapes of the initial values. If it returns the same shapes, they
hold for all steps by induction.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import AffineExpression, Dim
from rewrites.analysis.induction.integers import Integers
from rewrites.analysis.shapes.bodies import Walk, out_of_scan
from rewrites.base.not_applicable import NotApplicable
from rewrites.base.postorder import postorder
from rewrites.graph.context import Context
from rewrites.graph.dims import is_vague, refined, same, with_size
from rewrites.graph.node_inference import LearnedShapes, infer_afresh, put_shapes, restore_shapes, shapes_kept
from rewrites.graph.values import rank_of, shape_dims
from rewrites.graph.walk import all_nodes, inner_values
from rewrites.loops import LoopView, ScanView, State, is_loop, view
from rewrites.loops.view import captured_values
from rewrites.ops.versions import DYNAMIC, slice_range, slice_spec

__all__ = ["dims_of_sizes", "infer_sharply", "settled_beside", "sharpen", "dim_of_size", "unsettled_shapes"]


_SHAPED_BY = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1}
_TO_THE_END = (1 << 31) - 1


def sharpen(values: Iterable[ir.Value], ctx: Context) -> dict[ir.Value, ir.Shape | None]:
    """Infer once more the incompletely known shapes of ``values`` and of the values they depend on.

    Return the values whose shapes became more exact, mapped to their old shapes.
    """
    changed: dict[ir.Value, ir.Shape | None] = {}
    for node in _makers(values):
        for value in node.outputs:
            shape = value.shape
            if is_vague(shape):
                value.shape = refined(shape, _again(node, value, ctx))
                if value.shape != shape:
                    changed.setdefault(value, shape)
    return changed


def dims_of_sizes(sizes: AffineExpression | None) -> list[int | str | None] | None:
    """Return the dimensions that the vector ``sizes`` contains.

    A dimension is a number, a name or None (unknown).

    Return None if ``sizes`` is unknown or no vector.
    """
    if sizes is None or sizes.const.ndim != 1:
        return None
    return [dim_of_size(sizes.element(i)) for i in range(sizes.const.size)]


def dim_of_size(size: AffineExpression) -> int | str | None:
    """Return ``size`` as a dimension: a number, the name of a dimension, or None if it is neither."""
    symbols = list(size.terms)
    alone = len(symbols) == 1 and size.factor(symbols[0]) == 1 and not size.const.item()
    key = symbols[0].key if alone and isinstance(symbols[0], Dim) else None
    return size.number if size.number is not None else key if isinstance(key, str) else None


def _makers(values: Iterable[ir.Value]) -> list[ir.Node]:
    """Return the nodes to infer again to learn more about the shapes of ``values``.

    Start with the producers of those ``values`` whose shapes are incompletely known. Add the producers of their operands with
    incompletely known shapes, and so on. Producers come before users.
    """
    return postorder(_made_vaguely(values), lambda node: _made_vaguely(node.inputs))


def _made_vaguely(values: Iterable[ir.Value | None]) -> list[ir.Node]:
    return [maker for value in values if value is not None and is_vague(value.shape) and (maker := value.producer()) is not None]


def _again(node: ir.Node, value: ir.Value, ctx: Context) -> ir.Shape | None:
    if is_loop(node):
        loop = view(node, ctx.opset)
        return out_of_scan(loop, named=True)[value] if isinstance(loop, ScanView) and not loop.batched else None
    return infer_afresh(node, lambda node: infer_sharply(node, ctx, Integers(ctx.opset)))[value]


def infer_sharply(node: ir.Node, ctx: Context, integers: Integers) -> None:
    """Infer the shapes of the results of ``node`` with onnx.

    If onnx does not find all sizes, derive them from the shape operand of a Reshape, Expand or ConstantOfShape, or from constant
    bounds of a Slice. ``integers``: the analysis that describes shape operands by affine expressions.
    """
    ctx.infer(node)
    if node.domain != "" or not node.outputs:
        return
    result, dims = node.outputs[0], None
    if result.shape is not None and not is_vague(result.shape):
        return
    if node.op_type in _SHAPED_BY and len(node.inputs) > _SHAPED_BY[node.op_type]:
        dims = dims_of_sizes(integers.of(node.inputs[_SHAPED_BY[node.op_type]]))
        dims = dims if dims is not None and _is_whole(node, dims) else None
    elif node.op_type == "Slice":
        dims = _of_slice(node, ctx)
    if dims is not None:
        result.shape = refined(result.shape, ir.Shape(dims))


def _of_slice(node: ir.Node, ctx: Context) -> list[int | str | None] | None:
    """Return the sizes of a Slice with constant bounds.

    An axis of unknown size keeps its name if the Slice keeps the whole axis.
    """
    source = node.inputs[0]
    if source is None or source.shape is None:
        return None
    spec = slice_spec(node, ctx.opset, len(source.shape))
    dims = shape_dims(source.shape)
    if spec is DYNAMIC or not set(spec.axes) <= set(range(len(dims))) or 0 in spec.steps:
        return None
    if len({len(part) for part in (spec.starts, spec.ends, spec.axes, spec.steps)}) > 1:
        return None
    for start, end, axis, step in zip(spec.starts, spec.ends, spec.axes, spec.steps, strict=True):
        dim = dims[axis]
        if isinstance(dim, int):
            dims[axis] = len(slice_range(start, end, step, dim))
        elif (start, step) != (0, 1) or end < _TO_THE_END:
            dims[axis] = None
    return dims


def _is_whole(node: ir.Node, dims: list[int | str | None]) -> bool:
    """Return True if the sizes ``dims`` in an operand of ``node`` are exactly the shape of the result.

    This holds for every ConstantOfShape, and for a Reshape if all sizes are known and positive. It holds for an Expand if each axis
    of the source has size 1 or the size in ``dims``.
    """
    if node.op_type == "Reshape":  # an unknown size might be 0, which copies another size
        return all(isinstance(dim, int) and dim > 0 for dim in dims)
    if node.op_type == "ConstantOfShape":
        return True
    source = node.inputs[0]
    own = None if source is None or source.shape is None else shape_dims(source.shape)
    if own is None or len(own) > len(dims):
        return False
    aligned = zip(reversed(own), reversed(dims), strict=False)
    return all(dim == 1 or (dim is not None and dim == full) for dim, full in aligned)


_Growing = Mapping[ir.Value, int | None]


def unsettled_shapes(loop: LoopView, ctx: Context) -> NotApplicable | LearnedShapes:
    """Infer the shapes in the body of ``loop``, and return them if no state changes its shape.

    Otherwise, return the reason: a state may change its shape, or the rank of a result is unknown. Declared shapes of states are
    ignored, because they may be wrong. If the shapes of the loop's inputs are not known well enough, they are inferred again, and
    then the body. The shapes in the model are restored afterwards.
    """
    with _looked_at(loop, ctx, {}) as (refusal, before):
        return restore_shapes(before) if refusal is None else refusal


@contextmanager
def settled_beside(loop: LoopView, ctx: Context, growing: _Growing) -> Iterator[bool]:
    """Infer the shapes in the body of ``loop``, and yield True if all its states keep their shapes.

    Two kinds of states need not keep their shapes: sequences, and the states in ``growing``. ``growing`` maps a state to the axis
    along which it grows. If it maps the state to None, the body is inferred with the state's initial shape. Inside the ``with``
    block, the values of the body have the inferred shapes.
    """
    sequences = {state.inner: None for state in loop.states if not isinstance(state.initial.type, ir.TensorType)}
    with _looked_at(loop, ctx, {**sequences, **growing}) as (refusal, _):
        yield refusal is None


@contextmanager
def _looked_at(loop: LoopView, ctx: Context, growing: _Growing) -> Iterator[tuple[NotApplicable | None, LearnedShapes]]:
    """Infer the shapes in the body of ``loop`` for the duration of a ``with`` block.

    If a state may change its shape or a rank is unknown, infer the loop's inputs again, and then the body. Yield two things: the
    reason if this fails too, else None; and the old shapes of the changed values.
    """
    with shapes_kept([*loop.body.inputs, *inner_values(loop.body)]) as before:
        refusal = _unsettled(loop, ctx, growing, before)
        if refusal is not None:
            sharpened = sharpen([*captured_values(loop.body), *(state.initial for state in loop.states)], ctx)
            refusal = _unsettled(loop, ctx, growing, before) if sharpened else refusal
            before.update(sharpened)
        yield refusal, before


def _unsettled(loop: LoopView, ctx: Context, growing: _Growing, before: LearnedShapes) -> NotApplicable | None:
    """Infer the shapes in the body. Return a reason if a state may change its shape or a rank is unknown.

    ``before``: the old shapes of the values, which are restored if there is a reason.

    In the body, only sizes of outer values and of initial values have names. So each name is the same size in all steps. Results of
    nested Loops have no inferred shape.
    """

    def infer(node: ir.Node) -> None:
        infer_sharply(node, ctx, Integers(ctx.opset, node.graph, same_sizes=True))

    for state in loop.states:
        axis, shape = growing.get(state.inner), state.initial.shape
        state.inner.shape = shape if axis is None else with_size(shape, axis, None)
    Walk(ctx.opset, infer, lambda _: None, declared_rows=True).follow(loop.body)
    refusal = _changing_state([state for state in loop.states if state.inner not in growing])
    put_shapes({value: before[value] for node in all_nodes(loop.body) for value in node.outputs if value.shape is None})
    vague = next((output.inner for output in loop.scan_outputs if rank_of(output.inner) is None), None)
    if refusal is None and vague is not None:
        refusal = NotApplicable("RANK-UNKNOWN", f"the rank of the result '{vague.name}' is not known, but a Scan needs it")
    if refusal is not None:
        put_shapes(before)
    return refusal


def _changing_state(states: Sequence[State]) -> NotApplicable | None:
    for state in states:
        initial, back = state.initial.shape, state.next.shape
        if not same(initial, back):
            detail = f"state '{state.inner.name}' starts with the shape {initial}, but the body returns {back}"
            return NotApplicable("LOOP-STATE-SHAPE", detail)
    return None
