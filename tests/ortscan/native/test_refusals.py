"""Invalid plans, and plans that leave their bounds, fail the session or the run with a reason."""

import base64
import dataclasses
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import helper

from rewrites.native.encoding import encode
from rewrites.native.operations import INT32, INT64, Op
from rewrites.native.plan import ONE, ZERO, Form, Phase, Plan, PlanState, Size, Storage, Symbol, Value, ValueKind
from tests.support.finding_plans import finding_plans
from tests.support.native_plans import elementwise, library, operand, outputs_of, plan_session, row, run_native, single
from tests.support.sample_plans import counting, lstm, recurrence, sample_plans

FAILURES = (ort.capi.onnxruntime_pybind11_state.RuntimeException, ort.capi.onnxruntime_pybind11_state.InvalidArgument)
FAILURES += (ort.capi.onnxruntime_pybind11_state.Fail, ort.capi.onnxruntime_pybind11_state.InvalidGraph)


def refused(plan: Plan | bytes, inputs: int = 2, outputs: int = 1) -> str:
    with pytest.raises(FAILURES) as caught:
        plan_session(plan, inputs, outputs)
    return str(caught.value).partition("ai.ortscan: ")[2]


def replaced(index: int, **changes: Any) -> Callable[[Plan], Plan]:
    """Return a function that changes a field of an instruction."""

    def change(plan: Plan) -> Plan:
        instructions = list(plan.instructions)
        instructions[index] = dataclasses.replace(instructions[index], **changes)
        return dataclasses.replace(plan, instructions=tuple(instructions))

    return change


def valued(index: int, value: Value) -> Callable[[Plan], Plan]:
    def change(plan: Plan) -> Plan:
        return dataclasses.replace(plan, values=(*plan.values[:index], value, *plan.values[index + 1 :]))

    return change


def with_fields(**changes: Any) -> Callable[[Plan], Plan]:
    return lambda plan: dataclasses.replace(plan, **changes)


THIRTEEN = Size(13)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (replaced(2, dims=(ONE, ONE, ONE, Size(14))), "operand 0 of instruction 2 reaches outside its value"),
        (replaced(2, dims=(ONE, ONE, ONE, Size(-1))), "instruction 2 has a negative size"),
        (
            replaced(2, operands=(row(3), operand(2, (0, 0, 0, 1), 1), row(5))),
            "operand 1 of instruction 2 reaches outside its value",
        ),
        (replaced(2, operands=(row(3), operand(2, (0, 0, 0, 1), -1), row(5))), "operand 1 of instruction 2 reaches outside"),
        (replaced(2, operands=(row(3), operand(2, (0, 0, 0, 2)), row(5)), dims=(ONE, ONE, ONE, Size(5))), "has an inner stride"),
        (replaced(2, operands=(row(3), operand(2, (0, 0, 0, -1), 12), row(5))), "operand 1 of instruction 2 has an inner stride"),
        (replaced(2, operands=(row(3, repeated=True), row(2), row(5))), "operand 0 of instruction 2 has an inner stride"),
        (replaced(2, dims=(Size(2), ONE, ONE, Size(13))), None),
        (replaced(2, dims=(Size(2**31 - 1), Size(2**31 - 1), Size(2**31 - 1), Size(13))), "reaches outside its value"),
        (
            replaced(
                2,
                dims=(Size(2**31 - 1),) * 3 + (ONE,),
                operands=(operand(3, (-(2**31) + 1,) * 3 + (1,), 2**31 - 1), row(2), row(5)),
            ),
            "operand 0 of instruction 2 reaches outside its value",
        ),
        (
            replaced(2, dims=(Size(2**31 - 1),) * 3 + (ONE,), operands=(operand(3, (2**31 - 1,) * 3 + (1,)), row(2), row(5))),
            "operand 0 of instruction 2 reaches outside its value",
        ),
        (replaced(2, operands=(row(0), row(2), row(5))), "instruction 2 writes into what is given"),
        (replaced(2, operands=(row(2), row(2), row(5))), "instruction 2 writes into what is given"),
        (replaced(2, operands=(row(4), row(2), row(5))), "instruction 2 writes into what is given"),
        (replaced(2, operands=(row(3), row(7), row(5))), "operand 1 of instruction 2 is no value"),
        (replaced(2, operands=(row(3), None, row(5))), "instruction 2 has no operand 1"),
        (replaced(2, operands=(row(3), row(2))), "instruction 2 has 2 operands"),
        (replaced(2, flags=1), "instruction 2 has flags"),
        (replaced(2, op=43, operands=(row(3), row(2))), "operation 43, which this library does not have"),
        (replaced(2, op=13), "operation 13, which this library does not have"),
        (replaced(2, op=-5), "operation -5, which this library does not have"),
        (replaced(2, op=10**6), "operation 1000000, which this library does not have"),
        (valued(0, Value(ValueKind.SCANNED, 1, Size(14))), "value 0 reaches outside its storage"),
        (valued(0, Value(ValueKind.SCANNED, 1, THIRTEEN, ONE)), "value 0 reaches outside its storage"),
        (valued(0, Value(ValueKind.SCANNED, 1, THIRTEEN, Size(-1))), "value 0 reaches outside its storage"),
        (valued(0, Value(ValueKind.SCANNED, 1, Size(-1))), "value 0 reaches outside its storage"),
        (valued(0, Value(ValueKind.SCANNED, 0, THIRTEEN)), "value 0 has index 0, which is no such thing"),
        (valued(0, Value(ValueKind.CAPTURED, 1, THIRTEEN)), "value 0 has index 1, which is no such thing"),
        (valued(0, Value(ValueKind.SCANNED, 2, THIRTEEN)), "value 0 has index 2, which is no such thing"),
        (valued(0, Value(ValueKind.STACKED, -1, THIRTEEN)), "value 0 has index -1, which is no such thing"),
        (valued(0, Value(ValueKind.PACK, 0, THIRTEEN)), "value 0 has index 0, which is no such thing"),
        (valued(0, Value(ValueKind.SCANNED, 1, THIRTEEN, dtype=11)), "value 0 has element type 11"),
        (valued(4, Value(ValueKind.CONSTANT, 0, Size(3))), "value 4 reaches outside its storage"),
        (valued(5, Value(ValueKind.ROWS, 0, THIRTEEN, Size(40))), "value 5 reaches outside its storage"),
        (valued(5, Value(ValueKind.ROWS, 0, THIRTEEN, Size(12))), "value 5 overlaps a state"),
        (valued(6, Value(ValueKind.TEMPORARY, 0, THIRTEEN, Size(0))), "value 6 overlaps a state"),
        (with_fields(states=(PlanState(Storage.IN_PLACE, Size(53)),)), "state 0 reaches outside the workspace"),
        (with_fields(states=(PlanState(Storage.TWO_ROWS, Size(40)),)), "state 0 reaches outside the workspace"),
        (with_fields(states=(PlanState(Storage.IN_PLACE, Size(-1)),)), "state 0 reaches outside the workspace"),
        (with_fields(states=(PlanState(Storage.OUTPUT_ROWS, ZERO, 1),)), "state 0 is in output 1"),
        (with_fields(states=(PlanState(Storage.IN_PLACE, ZERO, 1),)), "state 0 is in region 1"),
        (with_fields(regions=(Size(-1),)), "region 0 has a negative size"),
        (with_fields(regions=(Size(64),)), "reaches outside its storage"),
        (with_fields(block=0), "a block of 0 steps is out of range"),
        (with_fields(block=65537), "a block of 65537 steps is out of range"),
        (with_fields(phases=(Phase(True, 0, 5),)), "phase 0 is out of range"),
        (with_fields(phases=(Phase(True, -1, 2),)), "phase 0 is out of range"),
        (with_fields(phases=(Phase(True, 0, 2), Phase(True, 1, 3))), "phase 1 is out of range or overlaps the one before"),
        (with_fields(phases=(Phase(True, 2, 2), Phase(True, 0, 2))), "phase 1 is out of range or overlaps the one before"),
        (with_fields(inputs=recurrence(Storage.IN_PLACE).inputs[:1]), "the plan has no scanned input after its states"),
        (with_fields(inputs=recurrence(Storage.IN_PLACE).inputs[::-1]), "the plan has no scanned input after its states"),
    ],
)
def test_a_plan_that_reaches_outside_is_refused(change: Callable[[Plan], Plan], why: str | None) -> None:
    plan = change(recurrence(Storage.IN_PLACE))
    if why is None:
        plan_session(plan, 2, 2)  # outer dims without strides only do the same again
    else:
        assert why in refused(plan, 2, 2)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"form": 2}, "this library knows no loops of form 2"),
        ({"form": Form.SCAN}, "the plan has no scanned input after its states"),
        ({"states": (), "inputs": counting().inputs[1:]}, "the plan's first state is no condition"),
        ({"inputs": (counting().inputs[1], *counting().inputs[1:])}, "the plan's first state is no condition"),
        ({"inputs": counting().inputs[:2]}, "the plan has no limit after its states"),
        ({"inputs": (*counting().inputs[:2], dataclasses.replace(counting().inputs[2], dtype=INT32))}, "the plan has no limit"),
        ({"inputs": (*counting().inputs, counting().inputs[2])}, "input 3 is out of order"),
        ({"inputs": (*counting().inputs[:2], dataclasses.replace(counting().inputs[2], dims=(Size(2),)))}, "is not one element"),
        ({"outputs": (dataclasses.replace(counting().outputs[0], backwards=True),)}, "output 0 cannot run backwards"),
        ({"block": 2}, "the steps of a loop with a condition are in blocks"),
    ],
)
def test_a_loop_has_a_condition_a_limit_and_single_steps(changes: dict[str, Any], why: str) -> None:
    plan = dataclasses.replace(counting(), **changes)
    assert why in refused(plan, len(plan.inputs), 2)


def test_step_number_is_a_scalar_of_loops_only() -> None:
    assert "value 0 is of kind 9" in refused(
        valued(0, Value(ValueKind.STEP_NUMBER, 0, ONE, dtype=INT64))(recurrence(Storage.IN_PLACE)), 2, 2
    )
    number = next(index for index, value in enumerate(counting().values) if value.kind == ValueKind.STEP_NUMBER)
    assert "reaches outside its storage" in refused(
        valued(number, Value(ValueKind.STEP_NUMBER, 0, Size(2), dtype=INT64))(counting()), 3, 2
    )
    assert "element type 6" in refused(valued(number, Value(ValueKind.STEP_NUMBER, 0, ONE, dtype=INT32))(counting()), 3, 2)


def test_each_operator_runs_only_its_own_form() -> None:
    for plan, name in ((counting(), "Scan1"), (recurrence(Storage.IN_PLACE), "Loop1")):
        with pytest.raises(FAILURES, match="the plan is of a loop of the other form"):
            plan_session(plan, len(plan.inputs), 2, operator=name)


def test_two_states_may_not_share_storage() -> None:
    plan = lstm(Size(2), 5)
    two = (PlanState(Storage.IN_PLACE, ZERO), PlanState(Storage.IN_PLACE, Size(9)))
    assert "two states overlap in the workspace" in refused(dataclasses.replace(plan, states=two), 4, 3)


@pytest.mark.parametrize(
    ("matrix", "why"),
    [
        ((Size(4), Size(20), Size(5)), "operand 0 of instruction 0 reaches outside its value"),
        ((Size(3), Size(19), Size(5)), "instruction 0 is not of the size of its pack"),
        ((Size(3), Size(20), Size(4)), "instruction 0 is not of the size of its pack"),
        ((Size(3), Size(20), Size(-1)), "instruction 0 has a negative size"),
    ],
)
def test_product_stays_within_its_matrices(matrix: tuple[Size, Size, Size], why: str) -> None:
    assert why in refused(replaced(0, matrix=matrix)(lstm(Size(3), 5)), 4, 3)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"offset": ONE}, "pack 0 reaches outside its input"),
        ({"offset": Size(-1)}, "pack 0 reaches outside its input"),
        ({"stride_k": Size(2)}, "pack 0 reaches outside its input"),
        ({"stride_n": Size(-5)}, "pack 0 reaches outside its input"),
        ({"n": Size(21)}, "pack 0 reaches outside its input"),
        ({"k": Size(2**16), "n": Size(2**16), "stride_k": ZERO, "stride_n": ZERO}, "pack 0 is too large"),
        ({"input": 2}, "pack 0 is of no captured input"),
        ({"input": 4}, "pack 0 is of no captured input"),
    ],
)
@pytest.mark.parametrize("constant", [False, True])
def test_pack_stays_within_its_input(changes: dict[str, Any], why: str, constant: bool) -> None:
    plan = lstm(Size(3), 5)
    plan = dataclasses.replace(plan, packs=(dataclasses.replace(plan.packs[0], **changes),))
    with pytest.raises(FAILURES, match=why):
        plan_session(plan, 4, 3, {3: np.zeros((20, 5), np.float32)} if constant else None)


def test_a_constant_of_another_shape_is_refused_before_it_is_packed() -> None:
    with pytest.raises(FAILURES, match="axis 0 of input 3 is 2, and the plan says 20"):
        plan_session(lstm(Size(3), 5), 4, 3, {3: np.zeros((2, 5), np.float32)})


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({0: 0}, "this is no plan of format 1"),
        ({1: 7}, "words and says 7"),
        ({3: -1}, "the plan has -1 sizes"),
        ({3: 2**31 - 1}, "the plan has 2147483647 sizes"),
        ({4: 4097}, "the plan has 4097 inputs"),
        ({8: 2**31 - 1}, "the plan ends within its constants"),
        ({10: 65536}, "the plan ends within its instructions"),
        ({11: 0}, "the plan goes on after its phases"),
        ({13: 10**6}, "the plan has 1000000 regions"),
        ({15: 1}, "the last word of the plan's header is not 0"),
    ],
)
def test_wrong_header_is_refused(words: dict[int, int], why: str) -> None:
    data = bytearray(encode(recurrence(Storage.IN_PLACE)))
    for index, word in words.items():
        struct.pack_into("<i", data, 4 * index, word)
    assert why in refused(bytes(data), 2, 2)


def test_every_prefix_of_a_plan_is_refused() -> None:
    data = encode(elementwise(Op.ADD, 3, [False, False]))
    for count in range(0, len(data), 4):
        changed = bytearray(data[:count])
        if count >= 8:
            struct.pack_into("<i", changed, 4, count // 4)
        assert refused(bytes(changed))


@pytest.mark.parametrize(
    "text", ["", "AAA", "AA=A", "A===", "====", "TFBOMQ==\n", "TFBO MQ=", "TFBOMR==", "ÄÖÜß", base64.b64encode(b"LPN1").decode()]
)
def test_invalid_base64_is_refused(text: str) -> None:
    node = helper.make_node("Scan1", ["x"], ["y"], domain="ai.ortscan", plan=text)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", 1, None)], [helper.make_tensor_value_info("y", 1, None)]
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.ortscan", 1)]
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.register_custom_ops_library(str(library()))
    with pytest.raises(FAILURES, match=r"no base64|no plan of format 1|have no words|are no words"):
        ort.InferenceSession(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString(), options)


def test_the_node_must_have_the_plans_inputs_and_outputs() -> None:
    plan = recurrence(Storage.IN_PLACE)
    assert "the node has 3 inputs and 2 outputs, and its plan has 2 and 2" in refused(plan, 3, 2)
    assert "the node has 2 inputs and 1 outputs, and its plan has 2 and 2" in refused(plan, 2, 1)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({2: np.zeros((4, 3, 19), np.float32)}, "axis 2 of input 2 is 19, and the plan says 20"),
        ({2: np.zeros((4, 2, 20), np.float32)}, "axis 1 of input 2 is 2, and the plan says 3"),
        ({2: np.zeros((4, 3, 4, 5), np.float32)}, "input 2 has 4 axes, and the plan says 3"),
        ({2: np.zeros((), np.float32)}, "input 2 has 0 axes, and the plan says 3"),
        ({2: np.zeros((4,) + (1,) * 30, np.float32)}, "input 2 has 31 axes, and the plan says 3"),
        ({0: np.zeros((3, 6), np.float32)}, "axis 1 of input 0 is 6, and the plan says 5"),
    ],
)
def test_inputs_of_other_shapes_are_refused(changes: dict[int, np.ndarray], why: str) -> None:
    given = [np.zeros(shape, np.float32) for shape in ((3, 5), (3, 5), (4, 3, 20), (20, 5))]
    with pytest.raises(FAILURES, match=why):
        run_native(lstm(None, 5), [changes.get(index, each) for index, each in enumerate(given)])


def test_scanned_inputs_of_different_lengths_are_refused() -> None:
    with pytest.raises(FAILURES, match="input 1 has 3 steps, and input 0 has 2"):
        run_native(elementwise(Op.ADD, 4, [False, False]), [np.zeros((2, 4), np.float32), np.zeros((3, 4), np.float32)])


def test_sizes_of_symbols_are_proven_at_run_time() -> None:
    """The stacked row has 8 elements, whatever the size of the input."""
    batch = Size(1, (1,))
    plan = single(Op.EXP, (1, 1, 1, 8), [row(0), row(1)], [8, 8])
    plan = dataclasses.replace(
        plan,
        symbols=(Symbol(0, 1),),
        inputs=(dataclasses.replace(plan.inputs[0], dims=(batch,)),),
        values=(plan.values[0], dataclasses.replace(plan.values[1], count=batch)),
        instructions=(dataclasses.replace(plan.instructions[0], dims=(ONE, ONE, ONE, batch)),),
    )
    session = plan_session(plan, 1, 1)
    assert session.run(None, {"i0": np.zeros((2, 8), np.float32)})[0].shape == (2, 8)
    with pytest.raises(FAILURES, match="operand 0 of instruction 0 reaches outside its value"):
        session.run(None, {"i0": np.zeros((2, 9), np.float32)})
    assert session.run(None, {"i0": np.zeros((2, 3), np.float32)})[0].shape == (2, 8)


def test_size_overflow_is_refused() -> None:
    plan = lstm(None, 5)
    plan = dataclasses.replace(plan, regions=(Size(1 << 20, (4,)),))
    session = plan_session(plan, 4, 3)
    given = [np.zeros(shape, np.float32) for shape in ((300, 5), (300, 5), (1, 300, 20), (20, 5))]
    with pytest.raises(FAILURES, match="is out of range for these inputs"):
        session.run(None, {f"i{index}": each for index, each in enumerate(given)})


def damaged(data: bytes, source: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(source.randint(1, 3)):
        if source.random() < 0.3:
            changed[source.randrange(len(changed))] = source.randrange(256)
        else:
            word = source.choice([0, 1, -1, 2, 5, 16, 1000, 2**31 - 1, -(2**31), source.randrange(40)])
            struct.pack_into("<i", changed, 4 * source.randrange(len(changed) // 4), word)
    return bytes(changed)


FED = {
    "tensor(float)": "f4",
    "tensor(double)": "f8",
    "tensor(int32)": "i4",
    "tensor(int64)": "i8",
    "tensor(bool)": "?",
    "tensor(int8)": "i1",
    "tensor(uint8)": "u1",
}


def try_damaged(rounds: int) -> None:
    """Make sessions of damaged plans, and run those that load."""
    source = random.Random(5)
    plans = [(plan, encode(plan)) for plan in (*sample_plans(), *finding_plans())]
    ran = 0
    for _ in range(rounds):
        plan, data = source.choice(plans)
        try:
            name = "Loop1" if plan.form == Form.LOOP else "Scan1"
            session = plan_session(damaged(data, source), len(plan.inputs), outputs_of(plan), operator=name)
            shapes = [(3,) * (each.kind == 1) + tuple(size.coefficient for size in each.dims) for each in plan.inputs]
            types = [FED[each.type] for each in session.get_inputs()]
            session.run(None, {f"i{index}": np.ones(shape, types[index]) for index, shape in enumerate(shapes)})
            ran += 1
        except FAILURES:
            pass
    print(ran)


@pytest.mark.long
def test_damaged_plan_never_crashes() -> None:
    code = "from tests.ortscan.native.test_refusals import try_damaged; try_damaged(3000)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 100
