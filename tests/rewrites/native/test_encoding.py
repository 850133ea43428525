"""Plans as bytes and back, and what the format says of their steps."""

import struct

import numpy as np
import pytest

from rewrites.native.encoding import encode
from rewrites.native.operations import Op
from rewrites.native.plan import (
    ONE,
    ZERO,
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
from tests.support.plan_decoder import MalformedPlan, decode
from tests.support.plan_interpreter import run_plan

TWO, THREE = Size(2), Size(3)
ROW = (ZERO, ZERO, ZERO, ONE)
OLD, NEW, X, Y = (
    Value(ValueKind.OLD, 0, TWO),
    Value(ValueKind.NEW, 0, TWO),
    Value(ValueKind.SCANNED, 1, TWO),
    Value(ValueKind.STACKED, 0, TWO),
)


def summing(storage: PlanState, *, backwards: bool = False) -> Plan:
    """h + x is the new state and stacked."""
    dims = (ONE, ONE, ONE, TWO)
    old, new, x, y = (PlanOperand(index, ZERO, ROW) for index in range(4))
    instructions = [Instruction(Op.ADD, dims, (new, old, x))]
    if storage.storage != Storage.OUTPUT_ROWS:
        instructions.append(Instruction(Op.COPY, dims, (y, new)))
    return Plan(
        inputs=(Input(InputKind.INITIAL, (TWO,)), Input(InputKind.SCANNED, (TWO,), backwards)),
        outputs=(Output((TWO,), backwards),),
        states=(storage,),
        values=(OLD, NEW, X, Y),
        instructions=tuple(instructions),
        phases=(Phase(True, 0, len(instructions)),),
        regions=(Size(4),),
    )


def everything() -> Plan:
    """Each table has something, sizes have symbols."""
    batch, square = Size(1, (1, 0)), Size(-2, (2, 1))
    return Plan(
        symbols=(Symbol(1, 1), Symbol(2, 0)),
        inputs=(Input(InputKind.INITIAL, (batch,)), Input(InputKind.SCANNED, (), True), Input(InputKind.CAPTURED, (square, TWO))),
        outputs=(Output((batch, THREE), True),),
        states=(PlanState(Storage.OUTPUT_ROWS, ZERO, 0), PlanState(Storage.TWO_ROWS, batch)),
        packs=(PlanPack(2, ONE, TWO, THREE, square, ONE),),
        constants=struct.pack("<3f", 1.5, -0.0, float("nan")),
        values=(Value(ValueKind.ROWS, 0, batch, TWO), Value(ValueKind.PACK, 0, Size(6))),
        instructions=(
            Instruction(
                Op.LAYER_NORMALIZATION,
                (ONE, TWO, batch, THREE),
                (PlanOperand(0), PlanOperand(1), None, PlanOperand(0, TWO, ROW)),
                immediates=(0.5, 0.0),
            ),
            Instruction(
                Op.GEMM, (ONE, ONE, ONE, ONE), (PlanOperand(0), PlanOperand(0), PlanOperand(1)), (TWO, THREE, batch), flags=1
            ),
        ),
        phases=(Phase(False, 0, 1), Phase(True, 1, 1)),
        regions=(square,),
        block=16,
    )


@pytest.mark.parametrize("plan", [everything(), summing(PlanState(Storage.IN_PLACE)), summing(PlanState(Storage.OUTPUT_ROWS))])
def test_a_plan_is_read_as_it_was_written(plan: Plan) -> None:
    data = encode(plan)
    assert decode(data) == plan
    assert encode(decode(data)) == data


def test_the_words_are_those_of_the_format() -> None:
    words = np.frombuffer(encode(summing(PlanState(Storage.IN_PLACE))), "<i4").tolist()
    assert words[:16] == [0x314E4C50, len(words), 0, 4, 2, 1, 1, 0, 0, 4, 2, 1, 1, 1, 0, 0]
    assert words[16:20] == [0, 2, 4, 1]  # sizes
    assert words[20:30] == [0, 1, 0, 1, 1, 1, 1, 0, 1, 1]  # inputs
    assert words[30:34] == [1, 0, 1, 1]  # the output
    assert words[34:38] == [2, 0, 0, 0]  # the region and the state
    assert words[38:58] == [6, 0, 1, 1, 0, 7, 0, 1, 1, 0, 0, 1, 1, 1, 0, 5, 0, 1, 1, 0]  # values
    assert words[58 : 58 + 42] == [
        *(0, 0, 3, 3, 3, 1, 3),
        *(1, 0, 0, 0, 0, 3),
        *(0, 0, 0, 0, 0, 3),
        *(2, 0, 0, 0, 0, 3),
        *(-1, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0),
        *(3, 3, 3, 0, 0),
    ]
    assert words[-3:] == [1, 0, 2]


@pytest.mark.parametrize("spoil", [lambda d: d[:-4], lambda d: d + b"1234", lambda d: d[:-1], lambda d: b"\0" * 64, lambda d: b""])
def test_other_bytes_are_refused(spoil) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(MalformedPlan):
        decode(spoil(encode(everything())))


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    "storage", [PlanState(Storage.IN_PLACE), PlanState(Storage.TWO_ROWS, ZERO), PlanState(Storage.OUTPUT_ROWS)]
)
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_a_state_is_the_same_wherever_it_is_stored(storage: PlanState, steps: int, backwards: bool) -> None:
    initial, rows = np.float32([10, 20]), np.arange(2 * steps, dtype=np.float32).reshape(steps, 2)
    final, stacked = run_plan(decode(encode(summing(storage, backwards=backwards))), [initial, rows])
    sums = initial + np.cumsum(rows[::-1] if backwards else rows, 0)
    assert np.array_equal(stacked, sums[::-1] if backwards else sums)
    assert np.array_equal(final, sums[-1] if steps else initial)


def test_what_reaches_outside_its_value_fails() -> None:
    plan = summing(PlanState(Storage.IN_PLACE))
    far = Instruction(Op.COPY, (ONE, ONE, ONE, THREE), (PlanOperand(1, ZERO, ROW), PlanOperand(0, ZERO, ROW)))
    broken = Plan(plan.inputs, plan.outputs, plan.states, plan.values, (far,), (Phase(True, 0, 1),), regions=(Size(4),))
    with pytest.raises(AssertionError):
        run_plan(broken, [np.zeros(2, np.float32), np.zeros((1, 2), np.float32)])
