"""Plans whose rows are all one vector keep results in registers, with the same bits as plans that do not."""

import dataclasses
import itertools

import numpy as np
import pytest

from rewrites.native.operations import Op
from rewrites.native.plan import ONE, Input, InputKind, Instruction, Output, Phase, Plan, PlanState, Size, Storage, Value, ValueKind
from tests.ortscan.native.test_elementwise import ELEMENTWISE, IMMEDIATES, assert_same_bits
from tests.support.native_plans import row, run_native
from tests.support.sample_plans import arity

STATE, X, OLD, NEW, STACKED, MADE, ONE_NUMBER, SPARE = 0, 1, 5, 6, 7, 8, 9, 10
STORAGES = [Storage.IN_PLACE, Storage.TWO_ROWS, Storage.OUTPUT_ROWS]


def recurrence(size: int, storage: Storage, lines: list[tuple[Op, list[int], list[bool]]]) -> Plan:
    """Return a plan with a state and four inputs. A line has the target, the sources, and for each source if it is a scalar."""
    count = Size(size)
    kinds = [ValueKind.SCANNED] * 4 + [ValueKind.OLD, ValueKind.NEW, ValueKind.STACKED]
    values = [Value(kind, index, count) for kind, index in zip(kinds, [1, 2, 3, 4, 0, 0, 0], strict=True)]
    values += [Value(ValueKind.TEMPORARY, 0, count, Size(at)) for at in (32, 48)]
    values.append(Value(ValueKind.TEMPORARY, 0, Size(3), Size(64)))
    instructions = []
    for op, words, numbers in lines:
        dims = (ONE, ONE, ONE, ONE if words[0] == ONE_NUMBER else count)
        operands = (row(words[0] - 1), *(row(word - 1, flag) for word, flag in zip(words[1:], numbers, strict=True)))
        instructions.append(Instruction(op, dims, operands, immediates=IMMEDIATES))
    return Plan(
        inputs=(Input(InputKind.INITIAL, (count,)), *[Input(InputKind.SCANNED, (count,))] * 4),
        outputs=(Output((count,)),),
        states=(PlanState(storage),),
        values=tuple(values),
        instructions=tuple(instructions),
        phases=(Phase(True, 0, len(instructions)),),
        regions=(Size(80),),
    )


def with_another_row(plan: Plan) -> Plan:
    """Return the plan with another row of three numbers, whose result is unused."""
    other = Instruction(Op.COPY, (ONE, ONE, ONE, Size(3)), (row(SPARE - 1), row(X - 1, repeated=True)))
    phase = dataclasses.replace(plan.phases[0], count=plan.phases[0].count + 1)
    return dataclasses.replace(plan, instructions=(*plan.instructions, other), phases=(phase,))


def same_bits(plan: Plan, size: int) -> None:
    random = np.random.default_rng(size)
    given = [random.standard_normal((size,)), *(random.standard_normal((5, size)) for _ in range(4))]
    inputs = [each.astype(np.float32) for each in given]
    inputs[2][3, :2], inputs[1][2, -1] = (np.inf, 0.0)[: len(inputs[2][3, :2])], np.nan
    short, usual = run_native(plan, inputs), run_native(with_another_row(plan), inputs)
    for got, wanted in zip(short, usual, strict=True):
        assert_same_bits(got.reshape(1, -1), wanted.reshape(1, -1), [])


@pytest.mark.parametrize("size", [4, 8, 16])
def test_result_of_a_row_stays_in_a_register(size: int) -> None:
    """Each source of each operation is the previous row, the previous step in each storage, or a scalar."""
    for op in ELEMENTWISE:
        xs = [X, X + 1, X + 2, X + 3][: arity(op)]
        for place, number in itertools.product(range(arity(op)), (False, True)):
            flags = [number and index != place for index in range(arity(op))]
            handed = [*xs[:place], MADE, *xs[place + 1 :]]
            lines = [(Op.ADD, [MADE, X, OLD], [False, False]), (op, [STACKED, *handed], flags), (Op.COPY, [NEW, STACKED], [False])]
            same_bits(recurrence(size, Storage.IN_PLACE, lines), size)
    for op, storage in itertools.product((Op.ADD, Op.SUB, Op.MUL_ADD, Op.MUL_SUB_MUL), STORAGES):
        xs = [X, X + 1, X + 2, X + 3][: arity(op)]
        for place in range(arity(op)):
            words = [*xs[:place], OLD, *xs[place + 1 :]]
            target = STACKED if storage == Storage.OUTPUT_ROWS else NEW
            lines = [(op, [target, *words], [False] * arity(op))]
            if storage != Storage.OUTPUT_ROWS:
                lines = [(Op.COPY, [STACKED, OLD], [False]), *lines]
            same_bits(recurrence(size, storage, lines), size)


@pytest.mark.parametrize("size", [1, 8])
def test_one_number_beside_short_rows(size: int) -> None:
    for op in ELEMENTWISE:
        xs = [X, X + 1, X + 2, X + 3][: arity(op)]
        lines = [
            (Op.ADD, [MADE, X, OLD], [False, False]),
            (op, [ONE_NUMBER, *xs], [False] * arity(op)),
            (Op.MUL, [NEW, MADE, ONE_NUMBER], [False, size > 1]),
            (Op.COPY, [STACKED, NEW], [False]),
        ]
        same_bits(recurrence(size, Storage.IN_PLACE, lines), size)


def test_overwritten_result_is_not_reused() -> None:
    """The scalar is the first number of the previous row."""
    plan = recurrence(
        8,
        Storage.IN_PLACE,
        [(Op.ADD, [MADE, X, OLD], [False] * 2), (Op.NEG, [ONE_NUMBER, X], [False]), (Op.SUB, [NEW, X, MADE], [False] * 2)],
    )
    values = list(plan.values)
    values[ONE_NUMBER - 1] = values[MADE - 1]
    stacked = Instruction(Op.COPY, (ONE, ONE, ONE, Size(8)), (row(STACKED - 1), row(NEW - 1)))
    plan = dataclasses.replace(plan, values=tuple(values), instructions=(*plan.instructions, stacked), phases=(Phase(True, 0, 4),))
    same_bits(plan, 8)
