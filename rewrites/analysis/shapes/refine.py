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
from rewrites.analysis.shapes.bodies import ShapeWalk, scan_result_shapes
from rewrites.base.not_applicable import NotApplicable
from rewrites.base.postorder import postorder
from rewrites.graph.context import Context
from rewrites.graph.dims import is_vague, refined, same, with_size
from rewrites.graph.node_inference import LearnedShapes, infer_afresh, put_shapes, restore_shapes, shapes_kept
from rewrites.graph.type_names import shape_name
from rewrites.graph.values import rank_of, shape_dims
from rewrites.graph.walk import all_nodes, inner_values
from rewrites.loops import LoopView, ScanView, State, is_loop, view
from rewrites.loops.view import captured_values
from rewrites.ops.versions import DYNAMIC, slice_range, slice_spec

__all__ = ["body_with_kept_shapes", "dim_of_size", "dims_of_sizes", "infer_exactly", "refine_shapes", "shapes_of_kept_states"]


_SHAPED_BY = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1}
_TO_THE_END = (1 << 31) - 1


def refine_shapes(values: Iterable[ir.Value], ctx: Context) -> dict[ir.Value, ir.Shape | None]:
    """Infer once more the incompletely known shapes of ``values`` and of the values they depend on.

    Return the values whose shapes became more exact, mapped to their old shapes.
    """
    changed: dict[ir.Value, ir.Shape | None] = {}
    for node in _nodes_to_infer(values):
        for value in node.outputs:
            shape = value.shape
            if is_vague(shape):
                value.shape = refined(shape, _inferred_again(node, value, ctx))
                if value.shape != shape:
                    changed.setdefault(value, shape)
    return changed


def dims_of_sizes(sizes: AffineExpression | None) -> list[int | str | None] | None:
    """Return the sizes in the vector ``sizes`` as dimensions: numbers, names, or None if unknown.

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


def _nodes_to_infer(values: Iterable[ir.Value]) -> list[ir.Node]:
    """Return the nodes that may determine unknown sizes in ``values``. Producers come before users.

    These are the nodes that compute incompletely known ``values``, the nodes that compute incompletely known operands of these
    nodes, and so on.
    """
    return postorder(_producers_of_incomplete(values), lambda node: _producers_of_incomplete(node.inputs))


def _producers_of_incomplete(values: Iterable[ir.Value | None]) -> list[ir.Node]:
    return [maker for value in values if value is not None and is_vague(value.shape) and (maker := value.producer()) is not None]


def _inferred_again(node: ir.Node, value: ir.Value, ctx: Context) -> ir.Shape | None:
    """Infer the shape of ``value``, a result of ``node``, from scratch, and return it."""
    if is_loop(node):
        loop = view(node, ctx.opset)
        return scan_result_shapes(loop, keep_names=True)[value] if isinstance(loop, ScanView) and not loop.batched else None
    return infer_afresh(node, lambda node: infer_exactly(node, ctx, Integers(ctx.opset)))[value]


def infer_exactly(node: ir.Node, ctx: Context, integers: Integers) -> None:
    """Infer the shapes of the results of ``node`` with onnx, and add sizes that onnx does not find.

    These sizes come from the shape operand of a Reshape, Expand or ConstantOfShape, or from the constant bounds of a Slice.

    ``integers``: the domain that computes the affine expressions of shape operands.
    """
    ctx.infer(node)
    if node.domain != "" or not node.outputs:
        return
    result, dims = node.outputs[0], None
    if result.shape is not None and not is_vague(result.shape):
        return
    if node.op_type in _SHAPED_BY and len(node.inputs) > _SHAPED_BY[node.op_type]:
        dims = dims_of_sizes(integers.of(node.inputs[_SHAPED_BY[node.op_type]]))
        dims = dims if dims is not None and _is_complete_shape(node, dims) else None
    elif node.op_type == "Slice":
        dims = _dims_of_slice(node, ctx)
    if dims is not None:
        result.shape = refined(result.shape, ir.Shape(dims))


def _dims_of_slice(node: ir.Node, ctx: Context) -> list[int | str | None] | None:
    """Return the sizes of the result of a Slice with constant bounds.

    A size is None if it is unknown. If the Slice keeps a whole axis, the axis keeps its name.
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


def _is_complete_shape(node: ir.Node, dims: list[int | str | None]) -> bool:
    """Return True if ``dims``, the sizes in the shape operand of ``node``, are the shape of the result.

    This is true for every ConstantOfShape, for a Reshape if all sizes are known and positive, and for an Expand if each axis of the
    source has size 1 or the size in ``dims``.
    """
    if node.op_type == "Reshape":  # an unknown size might be 0, which copies another size
        return all(isinstance(dim, int) and dim > 0 for dim in dims)
    if node.op_type == "ConstantOfShape":
        return True
    source = node.inputs[0]
    source_dims = None if source is None or source.shape is None else shape_dims(source.shape)
    if source_dims is None or len(source_dims) > len(dims):
        return False
    aligned = zip(reversed(source_dims), reversed(dims), strict=False)
    return all(dim == 1 or (dim is not None and dim == full) for dim, full in aligned)


_Growing = Mapping[ir.Value, int | None]


def shapes_of_kept_states(loop: LoopView, ctx: Context) -> NotApplicable | LearnedShapes:
    """Infer the shapes in the body of ``loop``, and return them if all states keep their shapes.

    Declared shapes of states are ignored, because they may be wrong. If a state may change its shape or the rank of a result is
    unknown, infer the shapes of the loop's inputs again, and try once more. The shapes in the model do not change.

    Returns:
        The inferred shapes that differ from the shapes in the model, by value. Or the reason if both tries fail.
    """
    with _inferred_body(loop, ctx, {}) as (refusal, old_shapes):
        return restore_shapes(old_shapes) if refusal is None else refusal


@contextmanager
def body_with_kept_shapes(loop: LoopView, ctx: Context, growing: _Growing) -> Iterator[bool]:
    """Infer the shapes in the body of ``loop`` for a ``with`` block. Yield True if no state changes shape.

    Inside the block, the values of the body have the inferred shapes.

    ``growing``: states that may change their shapes. Each is mapped to the axis along which it grows. The size of this axis is
    unknown in the body. If a state is mapped to None, the body is inferred with the initial shape of the state. Sequences may
    change their shapes too.
    """
    sequences = {state.inner: None for state in loop.states if not isinstance(state.initial.type, ir.TensorType)}
    with _inferred_body(loop, ctx, {**sequences, **growing}) as (refusal, _):
        yield refusal is None


@contextmanager
def _inferred_body(loop: LoopView, ctx: Context, growing: _Growing) -> Iterator[tuple[NotApplicable | None, LearnedShapes]]:
    """Infer the shapes in the body of ``loop`` for the duration of a ``with`` block.

    If a state may change its shape or a rank is unknown, infer the loop's inputs again, and then the body.

    Yields:
        A reason if a state may still change its shape or a rank is still unknown, else None. And the old shapes of the changed
            values.
    """
    with shapes_kept([*loop.body.inputs, *inner_values(loop.body)]) as old_shapes:
        refusal = _infer_body_once(loop, ctx, growing, old_shapes)
        if refusal is not None:
            refined_inputs = refine_shapes([*captured_values(loop.body), *(state.initial for state in loop.states)], ctx)
            refusal = _infer_body_once(loop, ctx, growing, old_shapes) if refined_inputs else refusal
            old_shapes.update(refined_inputs)
        yield refusal, old_shapes


def _infer_body_once(loop: LoopView, ctx: Context, growing: _Growing, old_shapes: LearnedShapes) -> NotApplicable | None:
    """Infer the shapes in the body of ``loop``, and return a reason if they are not usable.

    They are not usable if a state may change its shape or the rank of a result is unknown.

    In the body, only sizes of outer values and of initial values have names. Therefore a name means the same size in all steps.
    Results of nested Loops have no inferred shape.

    Args:
        loop: The loop.
        ctx: The context.
        growing: The states that may change their shapes (see ``body_with_kept_shapes``).
        old_shapes: The shapes of the values before the inference. They are restored if a reason is returned.
    """

    def infer(node: ir.Node) -> None:
        infer_exactly(node, ctx, Integers(ctx.opset, node.graph, same_sizes=True))

    for state in loop.states:
        axis, shape = growing.get(state.inner), state.initial.shape
        state.inner.shape = shape if axis is None else with_size(shape, axis, None)
    ShapeWalk(ctx.opset, infer, lambda _: None, use_declared_rows=True).infer_graph(loop.body)
    refusal = _changing_state([state for state in loop.states if state.inner not in growing])
    put_shapes({value: old_shapes[value] for node in all_nodes(loop.body) for value in node.outputs if value.shape is None})
    vague = next((output.inner for output in loop.scan_outputs if rank_of(output.inner) is None), None)
    if refusal is None and vague is not None:
        refusal = NotApplicable("RANK-UNKNOWN", f"the rank of the result '{vague.name}' is not known, but a Scan needs it")
    if refusal is not None:
        put_shapes(old_shapes)
    return refusal


def _changing_state(states: Sequence[State]) -> NotApplicable | None:
    for state in states:
        initial, back = state.initial.shape, state.next.shape
        if not same(initial, back):
            start = f"state '{state.inner.name}' starts with the shape {shape_name(initial)}"
            detail = f"{start}, but the body returns {shape_name(back)}"
            return NotApplicable("LOOP-STATE-SHAPE", detail)
    return None
