"""Plans with one instruction that reads or writes at computed indices, or finds the positions of the largest elements."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rewrites.native.operations import FLOAT, INT64, NUMPY, Op, has_kernel, words_of
from rewrites.native.plan import Input, InputKind, Plan, PlanOperand, PlanState, Size, Storage, Value, ValueKind
from tests.support.native_plans import operand, single

__all__ = ["FOUND", "finding", "finding_plans", "meeting_plans"]

FOUND = (Op.ARG_MAX, Op.ARG_MIN, Op.TOP_K)


def finding(
    op: Op,
    dims: Sequence[int],
    operands: Sequence[PlanOperand],
    counts: Sequence[int],
    along: tuple[int, int],
    *,
    dtype: int = FLOAT,
    immediate: float = 0.0,
) -> Plan:
    """Return a plan. Value 0 is the stacked output, and the others are scanned inputs, of which the second has the indices."""
    to = INT64 if op in FOUND else dtype
    plan = single(op, dims, operands, counts, matrix=(*along, 1), immediates=(immediate, 0.0), dtype=dtype, to=to)
    if len(counts) < 3:
        return plan
    inputs = (plan.inputs[0], replace(plan.inputs[1], dtype=INT64))
    return replace(plan, inputs=inputs, values=(*plan.values[:2], replace(plan.values[2], dtype=INT64)))


def finding_plans() -> Iterator[Plan]:
    """Yield a plan of each kind and type: for rows of a matrix [7, 5], its elements, and the largest elements of its rows."""
    row, found = operand(0, (0, 0, 5, 1)), operand(2, (0, 0, 1, 0))
    for dtype in NUMPY:
        yield finding(Op.GATHER, (1, 1, 3, 5), [row, operand(1, (0, 0, 0, 1)), found], [15, 35, 3], (7, 5), dtype=dtype)
        yield finding(
            Op.SCATTER, (1, 1, 3, 5), [operand(0, (0, 0, 0, 1)), operand(1, (0, 0, 5, 1)), found], [35, 15, 3], (7, 5), dtype=dtype
        )
        each = operand(2, (0, 0, 5, 1))
        yield finding(Op.GATHER, (1, 1, 3, 5), [row, operand(1, (0, 0, 0, 1)), each], [15, 35, 15], (7, 5), dtype=dtype)
        turned = operand(1, (0, 0, 1, 0), 30)
        yield finding(Op.GATHER, (1, 1, 3, 5), [row, turned, each], [15, 35, 15], (7, -5), dtype=dtype)
        for op in FOUND if has_kernel(Op.TOP_K, dtype) else ():
            count = 3 if op == Op.TOP_K else 1
            target = operand(0, (0, 0, count, 1 if op == Op.TOP_K else 0))
            for immediate in (0.0, 1.0):
                operands = [target, operand(1, (0, 0, 7, 1))]
                yield finding(op, (1, 1, 5, 7), operands, [5 * count, 35], (count, 1), dtype=dtype, immediate=immediate)
    line = (0, 0, 0, 1)
    yield finding(Op.LOCATE, (1, 1, 1, 6), [operand(0, line), operand(1, line)], [6, 6], (4, 5), dtype=INT64)
    three = [operand(0, line), operand(1, line), operand(2, (0, 0, 0, 0))]
    yield finding(Op.LOCATE, (1, 1, 1, 6), three, [6, 6, 1], (4, 5), dtype=INT64)


def meeting_plans() -> Iterator[Plan]:
    """Yield plans that write rows into a state [7, 5] in place, by indices, with each way of combining old and new elements."""
    for dtype in NUMPY:
        for way in (1.0, 2.0, 3.0, 4.0) if has_kernel(Op.TOP_K, dtype) else ():
            operands = [operand(0, (0, 0, 0, 1)), operand(1, (0, 0, 5, 1)), operand(2, (0, 0, 1, 0))]
            plan = finding(Op.SCATTER, (1, 1, 3, 5), operands, [35, 15, 3], (7, 5), dtype=dtype, immediate=way)
            yield replace(
                plan,
                inputs=(Input(InputKind.INITIAL, (Size(35),), dtype=dtype), *plan.inputs),
                outputs=(),
                states=(PlanState(Storage.IN_PLACE, Size(0), 0),),
                values=(
                    Value(ValueKind.NEW, 0, Size(35), dtype=dtype),
                    *(replace(value, index=value.index + 1) for value in plan.values[1:]),
                ),
                regions=(Size(35 * words_of(dtype)),),
            )
