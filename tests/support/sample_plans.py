"""Plans of every kind: each operation alone, and recurrences with each storage, symbols, packs, blocks and constants."""

import struct
from collections.abc import Iterator
from dataclasses import replace

from rewrites.native.operations import BOOL, DOUBLE, INT32, INT64, NARROW, NUMPY, Op, has_kernel, words_of
from rewrites.native.plan import (
    ONE,
    ZERO,
    Form,
    Input,
    InputKind,
    Instruction,
    Output,
    Phase,
    Plan,
    PlanOperand,
    PlanPack,
    PlanState,
    Size,
    Storage,
    Symbol,
    Value,
    ValueKind,
)
from tests.support.native_plans import elementwise, operand, row, single

__all__ = ["FIXED_STORAGES", "arity", "counting", "growing", "lstm", "recurrence", "sample_plans"]

FIXED_STORAGES = tuple(storage for storage in Storage if storage < Storage.GROWS)
"""The storages of states that keep their sizes."""


def arity(op: Op) -> int:
    """Return the number of sources of an elementwise operation."""
    if op in (Op.MUL_ADD_MUL, Op.MUL_SUB_MUL):
        return 4
    return 2 if op < Op.COPY or op == Op.LOG_ADD_EXP else 1 if op < Op.WHERE else 3


def sample_plans() -> Iterator[Plan]:
    """Yield plans that the library accepts."""
    for op in Op:
        if op < Op.SUM and op != Op.CAST:
            yield elementwise(op, 37, [False] * arity(op), (0.5, 0.25))
            yield elementwise(op, 21, [index % 2 == 0 for index in range(arity(op))], (0.5, 0.25))
            operands = [operand(index, (0, 30, 15, 1), 2) for index in range(arity(op) + 1)]
            yield single(op, (1, 2, 2, 9), operands, [60] * (arity(op) + 1))
        elif op <= Op.DOT:
            sources = [operand(index + 1, (0, 0, 19, 1)) for index in range(2 if op == Op.DOT else 1)]
            yield single(op, (1, 1, 3, 19), [operand(0, (0, 0, 1, 0)), *sources], [3, *[57] * len(sources)])
        elif op < Op.GEMM:
            sources = [row(2), row(3)] if op == Op.LAYER_NORMALIZATION else [row(2)] if op == Op.RMS_NORMALIZATION else []
            rows = operand(1, (0, 0, 23, 1))
            yield single(op, (1, 1, 3, 23), [operand(0, (0, 0, 23, 1)), rows, *sources], [69, 69, *[23] * len(sources)])
    yield from _of_other_types()
    matrices = [operand(0, (0, 35, 7, 1)), operand(1, (0, 15, 3, 1)), operand(2, (0, 21, 7, 1)), operand(3, (0, 0, 0, 1))]
    yield single(Op.MATMUL, (1, 2, 1, 1), matrices, [70, 30, 42, 7], matrix=(5, 7, 3))
    columns = [operand(0, (0, 0, 1, 5)), operand(1, (0, 0, 1, 5)), operand(2, (0, 0, 1, 3))]
    yield single(Op.MATMUL, (1, 1, 1, 1), columns, [35, 15, 21], matrix=(5, 7, 3))
    reversed_rows = operand(1, (0, 0, -5, -1), 14)
    yield single(Op.COPY, (1, 1, 3, 5), [operand(0, (0, 0, 1, 3)), reversed_rows], [15, 15])
    yield from map(counting, FIXED_STORAGES)
    yield from (growing(), growing(2), growing(axis=0), growing(3, axis=2), growing(2, in_two=True))
    for storage in FIXED_STORAGES:
        for backwards in (False, True):
            yield recurrence(storage, backwards=backwards)
    for size in (1, 4, 8, 16):  # one vector a row
        yield recurrence(Storage.IN_PLACE, size=size)
        yield recurrence(Storage.OUTPUT_ROWS, size=size)
    for block in (1, 3):
        yield recurrence(Storage.TWO_ROWS, block=block, blocks_of_rows=block > 1)
    for rows in (1, 3, 9):
        yield lstm(Size(rows), 6)
    yield lstm(None, 5)
    bytes_packed = lstm(Size(2), 5)
    for dtype in NARROW:
        yield replace(bytes_packed, inputs=(*bytes_packed.inputs[:3], replace(bytes_packed.inputs[3], dtype=dtype)))


def _of_other_types() -> Iterator[Plan]:
    for op in Op:
        for dtype in (INT32, INT64, DOUBLE):
            if op < Op.SUM and has_kernel(op, dtype):
                yield elementwise(op, 21, [index % 2 == 0 for index in range(arity(op))], dtype=dtype)
            elif op < Op.LAYER_NORMALIZATION and has_kernel(op, dtype):
                sources = [operand(index + 1, (0, 0, 19, 1)) for index in range(2 if op == Op.DOT else 1)]
                yield single(op, (1, 1, 3, 19), [operand(0, (0, 0, 1, 0)), *sources], [3, *[57] * len(sources)], dtype=dtype)
    for dtype in NUMPY:
        for to in NUMPY:
            yield elementwise(Op.CAST, 17, [False], dtype=dtype, to=to)
        yield single(Op.COPY, (1, 1, 3, 5), [operand(0, (0, 0, 1, 3)), operand(1, (0, 0, -5, -1), 14)], [15, 15], dtype=dtype)
        yield _changing_places(dtype)


def _changing_places(dtype: int) -> Plan:
    """Return a plan with two states: one becomes the other, which becomes the row. The first is stacked."""
    count = Size(5)
    values = [Value(kind, index, count, dtype=dtype) for index in (0, 1) for kind in (ValueKind.OLD, ValueKind.NEW)]
    values += [Value(ValueKind.SCANNED, 2, count, dtype=dtype), Value(ValueKind.STACKED, 0, count, dtype=dtype)]
    copies = [(5, 0), (1, 2), (3, 4)]
    return Plan(
        inputs=tuple(Input(kind, (count,), dtype=dtype) for kind in (InputKind.INITIAL, InputKind.INITIAL, InputKind.SCANNED)),
        outputs=(Output((count,), dtype=dtype),),
        states=(PlanState(Storage.TWO_ROWS, Size(8)), PlanState(Storage.IN_PLACE, Size(18))),
        values=tuple(values),
        instructions=tuple(Instruction(Op.COPY, (ONE, ONE, ONE, count), (row(to), row(of))) for to, of in copies),
        phases=(Phase(True, 0, len(copies)),),
        regions=(Size(23 * words_of(dtype)),),
    )


def counting(storage: Storage = Storage.IN_PLACE, size: int = 3, least: int = 5) -> Plan:
    """Return a Loop with h = h + step number, stacked, while that number is below `least`."""
    count = Size(size)
    i, old, new, y, on, few, t = range(7)
    values = (
        Value(ValueKind.STEP_NUMBER, 0, ONE, dtype=INT64),
        Value(ValueKind.OLD, 1, count, dtype=INT64),
        Value(ValueKind.NEW, 1, count, dtype=INT64),
        Value(ValueKind.STACKED, 0, count, dtype=INT64),
        Value(ValueKind.NEW, 0, ONE, dtype=BOOL),
        Value(ValueKind.CONSTANT, 0, ONE, ONE, dtype=INT64),
        Value(ValueKind.TEMPORARY, 0, ONE, dtype=INT64),
    )
    instructions = [
        Instruction(Op.ADD, (ONE, ONE, ONE, count), (row(new), row(old), row(i, repeated=True))),
        Instruction(Op.LESS, (ONE,) * 4, (row(t), row(i), row(few))),
        Instruction(Op.CAST, (ONE,) * 4, (row(on), row(t))),
    ]
    if storage != Storage.OUTPUT_ROWS:
        instructions.append(Instruction(Op.COPY, (ONE, ONE, ONE, count), (row(y), row(new))))
    return Plan(
        inputs=(
            Input(InputKind.INITIAL, (), dtype=BOOL),
            Input(InputKind.INITIAL, (count,), dtype=INT64),
            Input(InputKind.LIMIT, (), dtype=INT64),
        ),
        outputs=(Output((count,), dtype=INT64),),
        states=(PlanState(Storage.TWO_ROWS, Size(8)), PlanState(storage, ZERO if storage == Storage.OUTPUT_ROWS else Size(2))),
        values=values,
        instructions=tuple(instructions),
        phases=(Phase(True, 0, len(instructions)),),
        constants=struct.pack("<2q", 0, least),
        regions=(Size(4 + 4 * size),),
        form=Form.LOOP,
    )


def growing(rows: int = 1, axis: int = 1, *, in_two: bool = False) -> Plan:
    """Return a Loop that adds `rows` rows of h to a cache, and then sets h to the sum of h and the mean of all rows.

    The other axes of the cache have the sizes 2 and 3. Its length is known only at run time. If the old and the new cache are in two
    regions, the old rows are negated.
    """
    before, after, each = Size(1, (1, 0)), Size(1, (0, 1)), Size(6)
    cache, h, new_h, moved, mean, y, old = range(7)
    wide = (ONE, ONE, ONE, Size(6 * rows))
    values = (
        Value(ValueKind.NEW, 2, Size(6, (0, 1))),
        Value(ValueKind.OLD, 1, Size(6 * rows)),
        Value(ValueKind.NEW, 1, Size(6 * rows)),
        Value(ValueKind.TEMPORARY, 3, Size(6, (0, 1))),
        Value(ValueKind.TEMPORARY, 0, each, Size(32 + 12 * rows)),
        Value(ValueKind.STACKED, 0, Size(6 * rows)),
        Value(ValueKind.OLD, 2, Size(6, (1, 0))),
    )
    added = PlanOperand(cache, Size(6, (1, 0)), (ZERO, ZERO, ZERO, ONE))
    along = PlanOperand(moved, ZERO, (ZERO, ZERO, after, ONE))
    instructions = (
        *(
            [Instruction(Op.NEG, (ONE, ONE, before, each), tuple(operand(part, (0, 0, 6, 1)) for part in (cache, old)))]
            if in_two
            else []
        ),
        Instruction(Op.COPY, wide, (added, row(h))),
        Instruction(Op.COPY, (ONE, ONE, each, after), (along, operand(cache, (0, 0, 1, 6)))),
        Instruction(Op.MEAN, (ONE, ONE, each, after), (operand(mean, (0, 0, 1, 0)), along)),
        Instruction(Op.ADD, (ONE, ONE, Size(rows), each), (*(operand(value, (0, 0, 6, 1)) for value in (new_h, h)), row(mean))),
        Instruction(Op.COPY, wide, (row(y), row(new_h))),
    )
    dims = [Size(2), Size(3)]
    dims.insert(axis, before)
    return Plan(
        inputs=(
            Input(InputKind.INITIAL, (), dtype=BOOL),
            Input(InputKind.INITIAL, (Size(6 * rows),)),
            Input(InputKind.INITIAL, tuple(dims)),
            Input(InputKind.LIMIT, (), dtype=INT64),
        ),
        outputs=(Output((Size(6 * rows),)),),
        states=(
            PlanState(Storage.IN_PLACE),
            PlanState(Storage.IN_PLACE, Size(16)),
            PlanState(Storage.GROWS_IN_TWO if in_two else Storage.GROWS, Size(rows), 1, axis),
        ),
        values=values,
        instructions=instructions,
        phases=(Phase(True, 0, len(instructions)),),
        symbols=(Symbol(2, axis), Symbol(2, -1 - axis)),
        regions=(Size(64 + 12 * rows), *[Size(6, (0, 1))] * 3),
        form=Form.LOOP,
    )


def recurrence(storage: Storage, *, backwards: bool = False, block: int = 2, blocks_of_rows: bool = True, size: int = 13) -> Plan:
    """Return h = h * 0.5 + exp(x), with tanh of h stacked, and the exponentials in rows of a block."""
    count = Size(size)
    x, y, old, new, half, made, own = range(7)
    outputs: tuple[Output, ...] = (Output((count,), backwards),)
    if storage == Storage.OUTPUT_ROWS:
        outputs = (*outputs, Output((count,), not backwards))
    rows = ValueKind.ROWS if blocks_of_rows else ValueKind.TEMPORARY
    values = (
        Value(ValueKind.SCANNED, 1, count),
        Value(ValueKind.STACKED, 0, count),
        Value(ValueKind.OLD, 0, count),
        Value(ValueKind.NEW, 0, count),
        Value(ValueKind.CONSTANT, 0, ONE, ONE),
        Value(rows, 0, count, Size(2 * size)),
        Value(ValueKind.TEMPORARY, 0, count, Size(2 * size + block * size)),
    )
    dims = (ONE, ONE, ONE, count)
    instructions = (
        Instruction(Op.EXP, dims, (row(made), row(x))),
        Instruction(Op.MUL, dims, (row(own), row(old), row(half, repeated=True))),
        Instruction(Op.ADD, dims, (row(new), row(own), row(made))),
        Instruction(Op.TANH, dims, (row(y), row(new))),
    )
    return Plan(
        inputs=(Input(InputKind.INITIAL, (count,)), Input(InputKind.SCANNED, (count,), backwards)),
        outputs=outputs,
        states=(PlanState(storage, ZERO, len(outputs) - 1),),
        values=values,
        instructions=instructions,
        phases=(Phase(False, 0, 1), Phase(True, 1, 3)) if blocks_of_rows else (Phase(True, 0, 4),),
        constants=struct.pack("<2f", 2.0, 0.5),
        regions=(Size(3 * size + block * size),),
        block=block,
    )


def lstm(batch: Size | None, hidden: int) -> Plan:
    """Return an LSTM cell on projected inputs [batch, 4 * hidden]. None is a batch that is known only at run time."""
    symbols = () if batch is not None else (Symbol(0, 0),)
    times = batch.coefficient if batch is not None else 1
    power = () if batch is not None else (1,)

    def rows(count: int) -> Size:
        return Size(times * count, power)

    gates, wide = 4 * hidden, Size(4 * hidden)
    h, h_new, c, c_new, x, weights, g, made = range(8)
    values = (
        Value(ValueKind.OLD, 0, rows(hidden)),
        Value(ValueKind.NEW, 0, rows(hidden)),
        Value(ValueKind.OLD, 1, rows(hidden)),
        Value(ValueKind.NEW, 1, rows(hidden)),
        Value(ValueKind.SCANNED, 2, rows(gates)),
        Value(ValueKind.PACK, 0, Size(hidden * gates)),
        Value(ValueKind.TEMPORARY, 0, rows(gates), rows(hidden)),
        Value(ValueKind.TEMPORARY, 0, rows(hidden), rows(hidden + gates)),
    )

    def at(value: int, wide: bool, part: int = 0) -> PlanOperand:
        return operand(value, (0, 0, gates if wide else hidden, 1), part * hidden)

    def dims(count: int) -> tuple[Size, Size, Size, Size]:
        return (ONE, ONE, rows(1), Size(count))

    return Plan(
        inputs=(
            *(Input(InputKind.INITIAL, (rows(1), Size(hidden))) for _ in range(2)),
            Input(InputKind.SCANNED, (rows(1), wide)),
            Input(InputKind.CAPTURED, (wide, Size(hidden))),
        ),
        outputs=(Output((rows(1), Size(hidden))),),
        states=(PlanState(Storage.OUTPUT_ROWS), PlanState(Storage.IN_PLACE)),
        values=values,
        instructions=(
            Instruction(
                Op.GEMM,
                (ONE, ONE, ONE, ONE),
                (at(g, True), at(h, False), PlanOperand(weights), at(x, True)),
                (rows(1), wide, Size(hidden)),
            ),
            Instruction(Op.SIGMOID, dims(3 * hidden), (at(g, True), at(g, True))),
            Instruction(Op.TANH, dims(hidden), (at(g, True, 3), at(g, True, 3))),
            Instruction(Op.MUL, dims(hidden), (at(made, False), at(g, True), at(g, True, 3))),
            Instruction(Op.MUL_ADD, dims(hidden), (at(c_new, False), at(g, True, 1), at(c, False), at(made, False))),
            Instruction(Op.TANH, dims(hidden), (at(made, False), at(c_new, False))),
            Instruction(Op.MUL, dims(hidden), (at(h_new, False), at(g, True, 2), at(made, False))),
        ),
        phases=(Phase(True, 0, 7),),
        packs=(PlanPack(3, ZERO, Size(hidden), wide, ONE, Size(hidden)),),
        symbols=symbols,
        regions=(rows(2 * hidden + gates),),
    )
