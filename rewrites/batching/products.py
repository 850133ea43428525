"""Matrix products: a few large products replace the MatMul or a similar operator of every step.

In one step, the operands are vectors, matrices or stacks of matrices, as in numpy's matmul. The parameter ``emit`` of many
functions is a function that emits the product operator.

MatMulInteger computes ``(A - a0) @ (B - b0)`` in int32, with the zero points a0 and b0. If a0 differs between steps, the rule emits
``A @ (B - b0) - a0 * colsum(B - b0)`` instead. Both return exactly the same integers, even if intermediate results overflow.

Works around ORT-TRANSPOSED-TIMES-VECTOR and ORT-PRODUCT-OF-NOTHING.
"""

from collections.abc import Callable, Sequence

import onnx_ir as ir

from rewrites.base import since
from rewrites.batching.alignment import stacked_operand, with_rank
from rewrites.batching.call import Call, Operand, Result
from rewrites.batching.dims import fold_steps, reshape_to_steps, step_dims
from rewrites.batching.table import rule
from rewrites.graph.values import dim_of, static_dims
from rewrites.ops.versions import move_axis_first, move_first_axis, reduce, reshape, squeeze, transpose, unsqueeze

__all__ = ["Product", "fused_matmul", "matmul", "matmul_integer", "product"]


Product = Callable[[ir.Value, ir.Value], ir.Value]

_SUMMED = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64})
_FEW_ROWS = 16
_FEW_COLUMNS = 8


def product(call: Call, emit: Product, *, is_matmul: bool) -> ir.Value:
    """Multiply operands 0 and 1 for all steps.

    Args:
        call: The call.
        emit: Emits the product operator.
        is_matmul: True if the operator is MatMul, so that the operands may be transposed and swapped.
    """
    left, right = call.operand(0), call.operand(1)
    if call.may_be_empty and left.batched != right.batched:
        return _that_may_be_empty(call, left, right, emit, is_matmul)
    if left.batched and right.batched:
        return _with_both_batched(call, left, right, emit, is_matmul)
    return (
        _with_batched_left(call, left, right, emit, is_matmul)
        if left.batched
        else _with_batched_right(call, left, right, emit, is_matmul)
    )


def _with_batched_left(call: Call, left: Operand, right: Operand, emit: Product, is_matmul: bool) -> ir.Value:
    """Emit the product for a batched left operand and a loop-invariant right operand.

    If the right operand is a matrix, one product multiplies the rows of all steps. If the right operand is a stack of matrices and
    a step has few rows, one product multiplies each matrix by the rows of all steps.
    """
    right_rank = call.rank(1)
    if right_rank == 1:
        return _times_vector(call, left.value, left.rank, right.value, emit)
    if right_rank == 2:
        return emit(left.value, right.value)
    left_rank = call.rank(0)
    if left_rank == 1:
        stacked = emit(left.value, right.value)
        return move_axis_first(call.build, stacked, right_rank - 2, right_rank)
    if is_matmul and left_rank == right_rank:
        merged = _rows_of_all_steps(call, left, right, emit)
        if merged is not None:
            return merged
    return emit(with_rank(call, left, right_rank), right.value)


def _rows_of_all_steps(call: Call, left: Operand, right: Operand, emit: Product) -> ir.Value | None:
    """Emit ``[T, *b, M, K] @ [*b, K, N]`` (T steps) as ``[*b, T * M, K] @ [*b, K, N]``.

    The second form reads each matrix [K, N] only once. Return None if M is so large that this gains nothing, or if a size is
    unknown, 0 or broadcast.
    """
    here, there = static_dims(left.inner), static_dims(right.inner)
    if here is None or there is None or here[:-2] != there[:-2] or here[-2] > _FEW_ROWS or 0 in here + there:
        return None
    b, rank = call.build, len(here)
    rows = move_first_axis(b, left.value, rank - 2, rank + 1)
    rows_of_results = emit(reshape(b, rows, [*here[:-2], -1, here[-1]]), right.value)
    rows_of_results = reshape(b, rows_of_results, [*here[:-2], -1, here[-2], there[-1]])
    return move_axis_first(b, rows_of_results, rank - 2, rank + 1)


def _with_batched_right(call: Call, left: Operand, right: Operand, emit: Product, is_matmul: bool) -> ir.Value:
    """Emit the product for a loop-invariant left operand and a batched right operand.

    If ``is_matmul`` and a step has few columns, the columns become rows: ``(A @ X).T = X.T @ A.T``.
    """
    b, left_rank, right_rank = call.build, call.rank(0), call.rank(1)
    if left_rank == 1:
        if right_rank > 1:
            return emit(left.value, right.value)
        if is_matmul:
            return _times_vector(call, right.value, 1, left.value, emit)
        return squeeze(b, emit(left.value, unsqueeze(b, right.value, [2])), [1])
    if right_rank == 1:
        if is_matmul and left_rank == 2:
            return emit(right.value, transpose(b, left.value, [1, 0]))
        columns = emit(left.value, transpose(b, right.value, [1, 0]))
        return move_axis_first(b, columns, left_rank - 1, left_rank)
    if is_matmul and left_rank == right_rank == 2:
        columns_of_step = dim_of(right.inner, 1)
        if columns_of_step == 1:
            rows = emit(squeeze(b, right.value, [2]), transpose(b, left.value, [1, 0]))
            return unsqueeze(b, rows, [2])
        if isinstance(columns_of_step, int) and columns_of_step <= _FEW_COLUMNS:
            rows = emit(transpose(b, right.value, [0, 2, 1]), transpose(b, left.value, [1, 0]))
            return transpose(b, rows, [0, 2, 1])
    return emit(left.value, with_rank(call, right, left_rank))


def _that_may_be_empty(call: Call, left: Operand, right: Operand, emit: Product, is_matmul: bool) -> ir.Value:
    """Emit the product for a loop that may run zero steps. Exactly one operand is batched.

    onnxruntime cannot broadcast an axis to size 0. So the right operand of the emitted product is a matrix, or both operands have
    the same batch axes.
    """
    left_rank, right_rank = call.rank(0), call.rank(1)
    if left.batched and right_rank == 2:
        return emit(left.value, right.value)
    if left.batched and right_rank == 1:
        return _times_vector(call, left.value, left_rank, right.value, emit)
    if is_matmul and not left.batched and left_rank <= 2 and right_rank <= 2:
        return _columns_of_all_steps(call, left, right, emit)
    stacked = [Operand(stacked_operand(call, index), True, operand.inner) for index, operand in enumerate((left, right))]
    return _with_both_batched(call, stacked[0], stacked[1], emit, is_matmul)


def _columns_of_all_steps(call: Call, left: Operand, right: Operand, emit: Product) -> ir.Value:
    """Emit ``[M, K] @ [T, K, N]`` (T steps) as ``[T * N, K] @ [K, M]``, and move the result's axes back.

    A Flatten separates the Transpose of the right operand from the product, because onnxruntime would fuse these two nodes wrongly.
    """
    b = call.build
    weights = transpose(b, left.value, [1, 0]) if left.rank == 2 else unsqueeze(b, left.value, [1])
    if right.rank == 1:
        columns_of_results = emit(right.value, weights)
        return squeeze(b, columns_of_results, [1]) if left.rank == 1 else columns_of_results
    inner, columns = step_dims(call, right)
    columns_of_results = emit(fold_steps(call, transpose(b, right.value, [0, 2, 1]), [columns, inner]), weights)
    if left.rank == 1:
        return reshape_to_steps(call, columns_of_results, [columns])
    return transpose(b, reshape_to_steps(call, columns_of_results, [columns, step_dims(call, left)[0]]), [0, 2, 1])


def _times_vector(call: Call, matrices: ir.Value, rank: int | None, vector: ir.Value, emit: Product) -> ir.Value:
    """Multiply ``matrices`` by ``vector``, which becomes a matrix with one column.

    This has two reasons: onnxruntime fuses a Transpose into a product with a vector wrongly, and it cannot multiply by a vector if
    the number of steps is 0.
    """
    if rank is None and call.opset < since.NEGATIVE_AXES:
        rank = call.rank(0)
    b = call.build
    return squeeze(b, emit(matrices, unsqueeze(b, vector, [1])), [-1 if rank is None else rank])


def _with_both_batched(call: Call, left: Operand, right: Operand, emit: Product, is_matmul: bool) -> ir.Value:
    """Emit a single batched product that multiplies, for each step, the two operands of that step.

    If an operand is a vector in one step, it becomes a matrix with one row or column.
    """
    b, left_rank, right_rank = call.build, call.rank(0), call.rank(1)
    if left_rank == right_rank == 1 and is_matmul and left.inner.dtype in _SUMMED:
        return reduce(b, "ReduceSum", b.op("Mul", left.value, right.value), [1], keepdims=False)
    left_value, right_value = left.value, right.value
    rank = max(left_rank, right_rank, 2)
    if left_rank == 1:
        left_value = unsqueeze(b, left_value, range(1, rank))
    else:
        left_value = with_rank(call, left, rank)
    if right_rank == 1:
        right_value = unsqueeze(b, right_value, [*range(1, rank - 1), rank])
    else:
        right_value = with_rank(call, right, rank)
    gone = [rank - 1] * (left_rank == 1) + [rank] * (right_rank == 1)
    return squeeze(b, emit(left_value, right_value), gone)


@rule("MatMul")
def matmul(call: Call) -> Sequence[Result]:
    """Emit one MatMul for all steps."""
    return [Result(product(call, lambda left, right: call.build.op("MatMul", left, right), is_matmul=True))]


@rule("FusedMatMul", domain="com.microsoft")
def fused_matmul(call: Call) -> Sequence[Result]:
    """Emit one product for all steps.

    The emitted node does not get the transposition flag of a vector. In one step, the operator ignores this flag. For all steps,
    the flag would transpose the matrix that consists of the vectors.
    """
    attributes = call.node.attributes
    if attributes.get_int("transBatchA", 0) or attributes.get_int("transBatchB", 0):
        raise call.refuse("NO-BATCHING-RULE", "batch axes are transposed")
    if attributes.get_int("transA", 0):
        call.require_steps("onnxruntime does not broadcast a transposed operand to empty tensors")
        if call.rank(1) == 1:
            raise call.refuse("NO-BATCHING-RULE", "onnxruntime multiplies a transposed matrix by a vector wrongly")
    flags = {"transA": attributes.get_int("transA", 0), "transB": attributes.get_int("transB", 0)}
    for index, flag in enumerate(flags):
        flags[flag] = int(bool(flags[flag]) and call.rank(index) > 1)

    def emit(left: ir.Value, right: ir.Value) -> ir.Value:
        return call.build.like(call.node, [left, right], **flags)[0]

    return [Result(product(call, emit, is_matmul=False))]


@rule("MatMulInteger")
def matmul_integer(call: Call) -> Sequence[Result]:
    """Emit one product for all steps. The second zero point must be loop-invariant."""
    call.require_invariant(3)
    zero, b = call.optional_operand(2), call.build
    if zero is None or not zero.batched:
        return [Result(_integer_product(call, call.value(2)))]
    call.require_invariant(1)
    left, right = call.rank(0), call.rank(1)
    rank = max(left, right) - (left == 1 or right == 1)
    raw = _integer_product(call, None)
    shift = b.op("Cast", zero.value, to=int(ir.DataType.INT32))
    shift = squeeze(b, shift, range(1, 1 + call.rank(2)))
    columns = reduce(b, "ReduceSum", _minus_zero_point(call), [max(right - 2, 0)], keepdims=left > 1 and right > 1)
    correction = b.op("Mul", unsqueeze(b, shift, range(1, 1 + rank)), columns)
    return [Result(b.op("Sub", raw, correction))]


def _integer_product(call: Call, zero: ir.Value | None) -> ir.Value:
    def emit(left: ir.Value, right: ir.Value) -> ir.Value:
        return call.build.like(call.node, [left, right, zero, call.value(3)])[0]

    if not call.batched(0) and not call.batched(1):
        return emit(call.operand(0).value, call.operand(1).value)
    return product(call, emit, is_matmul=False)


def _minus_zero_point(call: Call) -> ir.Value:
    """Return ``B - b0`` in int32: the second matrix minus its zero point."""
    b = call.build
    wide = b.op("Cast", call.operand(1).value, to=int(ir.DataType.INT32))
    zero = call.value(3)
    return wide if zero is None else b.op("Sub", wide, b.op("Cast", zero, to=int(ir.DataType.INT32)))
