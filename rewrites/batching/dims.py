"""Merges the steps into another axis of a value and splits them again.

Dimensions are numbers if they are known, else one-element tensors.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.base import since
from rewrites.batching.alignment import stacked_operand
from rewrites.batching.call import Call, Operand, Result
from rewrites.graph.builder import Builder
from rewrites.graph.values import dim_of, rank_of
from rewrites.ops.versions import concat, move_axis_first, move_first_axis, reshape, shape_of, slice_axis, unsqueeze

__all__ = [
    "Dim",
    "first_dim",
    "fold_operand",
    "fold_operand_at",
    "fold_steps",
    "product_of",
    "reshape_to",
    "reshape_to_steps",
    "shape_tensor",
    "static_steps",
    "step_dims",
    "unfold_result_at",
    "unfold_results",
    "unfold_steps",
    "vector_of_all_steps",
    "with_folded_first_size",
]


Dim = int | ir.Value
"""A dimension: a number, or a one-element int64 tensor."""


def step_dims(call: Call, operand: Operand) -> list[Dim]:
    """Return the dimensions that ``operand`` has in one step. Its rank must be known."""
    assert operand.rank is not None
    dims: list[Dim] = []
    for axis in range(operand.rank):
        dim = dim_of(operand.inner, axis)
        dims.append(dim if isinstance(dim, int) else shape_of(call.build, operand.value, axis + operand.batched))
    return dims


def product_of(b: Builder, dims: Sequence[Dim]) -> Dim:
    """Return the product of ``dims``, as a number if possible.

    If a dimension is computed at run time and no number in ``dims`` is 0, the product is a computed value too.
    """
    number, computed = 1, [dim for dim in dims if isinstance(dim, ir.Value)]
    for dim in dims:
        number *= dim if isinstance(dim, int) else 1
    if not computed or number == 0:
        return number
    total = computed[0]
    for dim in computed[1:]:
        total = b.op("Mul", total, dim)
    return total if number == 1 else b.op("Mul", total, b.const([number]))


def shape_tensor(b: Builder, dims: Sequence[Dim]) -> ir.Value:
    """Return the shape ``dims`` as an int64 vector. Emit the nodes that compute it."""
    parts: list[ir.Value] = []
    numbers: list[int] = []
    for dim in [*dims, None]:
        if isinstance(dim, int):
            numbers.append(dim)
            continue
        if numbers:
            parts.append(b.const(numbers))
        numbers = []
        if dim is not None:
            parts.append(dim)
    return concat(b, parts, axis=0)


def reshape_to(call: Call, x: ir.Value, dims: Sequence[Dim]) -> ir.Value:
    """Reshape ``x`` to ``dims``.

    If only one of ``dims`` is computed at run time, -1 replaces it in the shape, unless another dimension is 0.
    """
    if sum(isinstance(dim, ir.Value) for dim in dims) <= 1 and 0 not in dims:
        return reshape(call.build, x, [dim if isinstance(dim, int) else -1 for dim in dims])
    return _reshape_exactly(call, x, dims)


def reshape_to_steps(call: Call, x: ir.Value, dims: Sequence[Dim]) -> ir.Value:
    """Reshape ``x`` to [steps, *dims].

    The shape contains -1 for the steps, unless a dimension may be 0. A Reshape with both -1 and 0 fails.
    """
    if all(isinstance(dim, int) and dim > 0 for dim in dims):
        return reshape(call.build, x, [-1, *(dim for dim in dims if isinstance(dim, int))])
    return _reshape_exactly(call, x, [call.steps, *dims])


def _reshape_exactly(call: Call, x: ir.Value, dims: Sequence[Dim]) -> ir.Value:
    shape = shape_tensor(call.build, dims)
    return call.build.op("Reshape", x, shape, allowzero=1 if call.opset >= since.ALLOWZERO else None)


def fold_steps(call: Call, x: ir.Value, dims: Sequence[Dim]) -> ir.Value:
    """Merge the steps into the first axis of a step: ``[steps, d0, d1, …]`` -> ``[steps * d0, d1, …]``.

    ``dims``: the dimensions of ``x`` in one step: d0, d1, ….
    """
    if len(dims) == 2:
        return call.build.op("Flatten", x, axis=2)
    rest = [dim for dim in dims[1:] if isinstance(dim, int) and dim > 0]
    if len(rest) == len(dims) - 1:
        return reshape(call.build, x, [-1, *rest])
    flat = x if call.opset >= since.ALLOWZERO else call.build.op("Flatten", x, axis=2)
    return _reshape_exactly(call, flat, [product_of(call.build, [call.steps, dims[0]]), *dims[1:]])


def unfold_steps(call: Call, y: ir.Value, first: Dim, rank: int) -> ir.Value:
    """Undo ``fold_steps``: reshape ``y`` from [steps * first, …] to [steps, first, …].

    Args:
        call: The call.
        y: A result for all steps.
        first: The size of axis 0 in one step.
        rank: The rank of ``y``.
    """
    rest: list[Dim] = []
    for axis in range(1, rank):
        dim = dim_of(y, axis)
        rest.append(dim if isinstance(dim, int) else shape_of(call.build, y, axis))
    return reshape_to_steps(call, _with_leading_axis_if_ambiguous(call, y, first), [first, *rest])


def _with_leading_axis_if_ambiguous(call: Call, y: ir.Value, first: Dim) -> ir.Value:
    """Insert an axis of size 1 before axis 0 of ``y`` if a Reshape of ``y`` might copy a wrong size.

    The caller reshapes the result to [steps, first, ...]. Before opset 14, a 0 in this shape copies the size at the same index of
    the input. So if ``first`` is 0, the Reshape copies the size of axis 1 of its input. With the inserted axis, this input is [1,
    steps * first, ...], so the copied size is 0, which is correct.
    """
    is_needed = call.opset < since.ALLOWZERO and not isinstance(first, int) and not call.may_be_empty
    return unsqueeze(call.build, y, [0]) if is_needed else y


def first_dim(call: Call, index: int) -> Dim:
    """Return the size of axis 0 of operand ``index`` in one step. This axis is the batch axis."""
    if call.rank(index) < 1:
        raise call.refuse("NO-BATCHING-RULE", f"input {index} is a scalar")
    return step_dims(call, call.operand(index))[0]


def fold_operand(call: Call, index: int) -> ir.Value | None:
    """Return operand ``index`` with the steps merged into axis 0, or None if the operand is absent.

    A loop-invariant operand is first repeated for every step.
    """
    if call.optional_operand(index) is None:
        return None
    first_dim(call, index)
    return fold_steps(call, stacked_operand(call, index), step_dims(call, call.operand(index)))


def unfold_results(call: Call, values: Sequence[ir.Value], first: Dim) -> list[Result]:
    """Split axis 0 of each of ``values`` into [steps, first], and return the values as batched results.

    ``values``: the outputs of the emitted node, in the order of the node's outputs.
    """
    return [Result(_unfold_result(call, value, output, first)) for value, output in zip(values, call.node.outputs, strict=True)]


def _unfold_result(call: Call, value: ir.Value, output: ir.Value, first: Dim) -> ir.Value:
    b, ranks = call.build, (rank_of(value), rank_of(output))
    rank = next((known_rank for known_rank in ranks if known_rank is not None), None)
    if rank is not None:
        return unfold_steps(call, value, first, rank)
    rest = slice_axis(b, b.op("Shape", value), 0, 1, _END)
    shape = concat(b, [call.steps, first if isinstance(first, ir.Value) else b.const([first]), rest], axis=0)
    return b.op(
        "Reshape",
        _with_leading_axis_if_ambiguous(call, value, first),
        shape,
        allowzero=1 if call.opset >= since.ALLOWZERO else None,
    )


_END = 2**63 - 1


def with_folded_first_size(call: Call, sizes: ir.Value, first: Dim) -> ir.Value:
    """Return the shape tensor ``sizes`` with its first element replaced by steps * ``first``.

    ``sizes`` is the shape of one step. ``first``: the size of axis 0 in one step.
    """
    b, rows = call.build, product_of(call.build, [call.steps, first])
    return concat(b, [rows if isinstance(rows, ir.Value) else b.const([rows]), slice_axis(b, sizes, 0, 1, _END)], axis=0)


def fold_operand_at(call: Call, index: int, axis: int) -> ir.Value | None:
    """Return operand ``index`` with the steps merged into ``axis``, or None if the operand is absent.

    The new shape is [..., steps * size, ...], where ``size`` is the size of ``axis`` in one step.
    """
    if call.optional_operand(index) is None:
        return None
    rank = call.rank(index)
    if rank <= axis:
        raise call.refuse("NO-BATCHING-RULE", f"input {index} has {rank} axes")
    dims = step_dims(call, call.operand(index))
    moved = move_first_axis(call.build, stacked_operand(call, index), axis, rank + 1)
    return reshape_to(call, moved, [*dims[:axis], product_of(call.build, [call.steps, dims[axis]]), *dims[axis + 1 :]])


def unfold_result_at(call: Call, value: ir.Value, axis: int, step_size: Dim, rank: int) -> ir.Value:
    """Undo ``fold_operand_at``: split ``axis`` into [steps, step_size], and move the steps to axis 0.

    Args:
        call: The call.
        value: A result for all steps.
        axis: The axis into which the steps are merged.
        step_size: The size of ``axis`` in one step.
        rank: The rank of ``value``.
    """
    dims: list[Dim] = []
    for position in range(rank):
        dim = None if value.shape is None else value.shape[position]
        dims.append(dim if isinstance(dim, int) else shape_of(call.build, value, position))
    split = reshape_to(call, value, [*dims[:axis], call.steps, step_size, *dims[axis + 1 :]])
    return move_axis_first(call.build, split, axis, rank + 1)


def vector_of_all_steps(call: Call, index: int) -> ir.Value | None:
    """Return the vectors that operand ``index`` has in the steps, concatenated; None if it is absent."""
    return (
        None
        if call.optional_operand(index) is None
        else call.build.op("Reshape", stacked_operand(call, index), call.build.const([-1]))
    )


def static_steps(call: Call) -> int | None:
    """Return the number of steps if it is known, else None."""
    outside = (operand.value for operand in call.operands if operand is not None and operand.batched)
    return next((dim for value in outside if value.shape is not None and isinstance(dim := value.shape[0], int)), None)
