"""Recurrent nodes on targets that lack them, compared with onnxruntime's own kernels."""

from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

LOOPS = {"RNN", "GRU", "LSTM", "Scan", "Loop", "If"}
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
BATCH, WIDTH, HIDDEN = 3, 2, 4


def recurrent(
    kind: str,
    *,
    direction: str = "forward",
    steps: int | str = 3,
    lengths: bool = False,
    constant_lengths: list[int] | None = None,
    states: bool = True,
    peepholes: bool = False,
    dtype: str = "float32",
    results: str = "Y Y_h Y_c",
    opset: int = 18,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of one recurrent node, and feeds; weights are constants."""
    draw, sides = np.random.default_rng(3).standard_normal, 2 if direction == "bidirectional" else 1
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    size = GATES[kind] * HIDDEN
    shapes = {"W": (sides, size, WIDTH), "R": (sides, size, HIDDEN), "B": (sides, 2 * size), "P": (sides, 3 * HIDDEN)}
    weights = {name: (draw(shape) / 2).astype(dtype) for name, shape in shapes.items() if name != "P" or peepholes}
    fed: dict[str, tuple[Any, ...]] = {"X": (steps, BATCH, WIDTH)}
    carried = ["h0", "c0"] if kind == "LSTM" else ["h0"]
    fed |= dict.fromkeys(carried if states else [], (sides, BATCH, HIDDEN))
    feeds = {name: draw([3 if isinstance(d, str) else d for d in shape]).astype(dtype) for name, shape in fed.items()}
    inputs = [helper.make_tensor_value_info(name, element, shape) for name, shape in fed.items()]
    if lengths:
        feeds["lengths"] = np.array([2, 0, 3], np.int32)
        inputs.append(helper.make_tensor_value_info("lengths", onnx.TensorProto.INT32, [BATCH]))
    if constant_lengths is not None:
        weights["lengths"] = np.array(constant_lengths, np.int32)
    operands = [
        "X",
        "W",
        "R",
        "B",
        "lengths" if lengths or constant_lengths is not None else "",
        *(carried if states else [""] * len(carried)),
    ]
    operands += ["P"] if peepholes else []
    names = [name for name in ("Y", "Y_h", "Y_c") if kind == "LSTM" or name != "Y_c"]
    wanted = [name if name in results.split() else "" for name in names]
    node = helper.make_node(kind, operands, wanted, name="cell", hidden_size=HIDDEN, direction=direction, **attributes)
    declared = {"Y": (steps, sides, BATCH, HIDDEN), "Y_h": (sides, BATCH, HIDDEN), "Y_c": (sides, BATCH, HIDDEN)}
    outputs = [helper.make_tensor_value_info(name, element, declared[name]) for name in wanted if name]
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph([node], "g", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), feeds


def ops(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def written_out(model: onnx.ModelProto, feeds: dict[str, np.ndarray], target: str = "coreml", **options: Any) -> onnx.ModelProto:
    after = ortscan.optimize(model, target=target, verify=False, **options)
    assert not set(ops(after)) & LOOPS
    onnx.checker.check_model(after, full_check=True)
    expected = ort_run(model, feeds)
    assert_same_numbers(ort_run(after, feeds), expected)
    assert_same_numbers(ort_run(after, feeds, optimised=False), expected)
    return after


CASES = [
    (kind, direction, lengths, states, extra)
    for kind, direction, lengths, states in product(GATES, ("forward", "reverse", "bidirectional"), (False, True), (False, True))
    for extra in (
        [{}, {"clip": 0.4}]
        + ([{"linear_before_reset": 1}] if kind == "GRU" else [])
        + ([{"input_forget": 1}, {"peepholes": True, "clip": 0.3}] if kind == "LSTM" else [])
    )
]


@pytest.mark.parametrize(("kind", "direction", "lengths", "states", "extra"), CASES)
def test_a_node_becomes_its_steps(kind, direction, lengths, states, extra):
    written_out(*recurrent(kind, direction=direction, lengths=lengths, states=states, **extra))


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("results", ["Y", "Y_h", "Y_h Y_c"])
def test_only_what_is_asked_for_is_made(kind, results):
    after = written_out(*recurrent(kind, results=results))
    assert ("Concat" in ops(after)) == (results == "Y")


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("opset", [9, 11, 14, 22])
def test_in_every_opset(kind, opset):
    written_out(*recurrent(kind, opset=opset, direction="bidirectional"))


@pytest.mark.parametrize("kind", GATES)
def test_float16_is_computed_in_float32_as_onnxruntime_does(kind):
    written_out(*recurrent(kind, dtype="float16", lengths=True))


@pytest.mark.parametrize(
    ("kind", "names"), [("RNN", ["Relu"]), ("GRU", ["HardSigmoid", "Softsign"]), ("LSTM", ["Sigmoid", "LeakyRelu", "Elu"])]
)
def test_other_activations_are_written_too(kind, names):
    written_out(*recurrent(kind, activations=names))


@pytest.mark.parametrize("lengths", [[3, 3, 3], [1, 3, 2], [0, 3, 2]])
def test_constant_lengths_are_masks_where_they_say_something(lengths):
    after = written_out(*recurrent("LSTM", constant_lengths=lengths))
    assert ("Where" in ops(after)) == (lengths != [3, 3, 3])


@pytest.mark.parametrize(
    ("target", "kept"),
    [("qnn", {"LSTM", "GRU"}), ("webgpu", {"LSTM", "GRU"}), ("directml", {"LSTM", "GRU", "RNN"}), ("nnapi", set())],
)
def test_targets_keep_the_nodes_they_have(target, kept):
    for kind in GATES:
        after = ortscan.optimize(recurrent(kind)[0], target=target)
        assert set(ops(after)) & LOOPS == kept & {kind}


def test_nodes_beyond_what_the_target_does_are_written_out():
    written_out(*recurrent("LSTM", clip=0.5), target="qnn")
    written_out(*recurrent("LSTM", lengths=True), target="qnn")
    assert "LSTM" in ops(ortscan.optimize(recurrent("LSTM", clip=0.5)[0], target="cuda"))


def test_a_node_in_a_loop_is_written_out_with_it_or_not_at_all():
    inner, _ = recurrent("RNN", steps=1, states=False, results="Y_h")
    for steps in (3, "T"):
        body = helper.make_graph(
            [*inner.graph.node, helper.make_node("Add", ["Y_h", "s"], ["s1"])],
            "body",
            [helper.make_tensor_value_info("s", 1, [1, BATCH, HIDDEN]), helper.make_tensor_value_info("X", 1, [1, BATCH, WIDTH])],
            [helper.make_tensor_value_info("s1", 1, [1, BATCH, HIDDEN])],
            list(inner.graph.initializer),
        )
        scan = helper.make_node("Scan", ["s0", "xs"], ["sT"], num_scan_inputs=1, body=body)
        given = [
            helper.make_tensor_value_info("s0", 1, [1, BATCH, HIDDEN]),
            helper.make_tensor_value_info("xs", 1, [steps, 1, BATCH, WIDTH]),
        ]
        graph = helper.make_graph([scan], "g", given, [helper.make_tensor_value_info("sT", 1, [1, BATCH, HIDDEN])])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        after = ortscan.optimize(model, target="coreml", verify=True)
        if steps == 3:
            assert not set(ops(after)) & LOOPS


def test_nodes_of_unknown_length_stay_and_the_report_says_why():
    model, _ = recurrent("LSTM", steps="T")
    assert ops(ortscan.optimize(model, target="coreml")) == ["LSTM"]
    (loop,) = ortscan.explain(model, target="coreml").loops
    assert (loop.kind, loop.fate, loop.reasons[0].code) == ("LSTM", "kept", "UNROLL-UNKNOWN")
    assert loop.runs.startswith("native LSTM, which coreml does not run: it falls back to onnxruntime's CPU")
    written_out(model, recurrent("LSTM")[1], fix_shapes={"X": [3, BATCH, WIDTH]})


def test_nodes_of_too_many_steps_stay_and_the_report_counts_the_nodes():
    (loop,) = ortscan.explain(recurrent("GRU", steps=10**6)[0], target="coreml").loops
    assert loop.reasons[0].code == "UNROLL-NODES"
    assert "24000000 nodes" in loop.reasons[0].detail
    (loop,) = ortscan.explain(recurrent("GRU", steps=9)[0], target="coreml", max_unroll=8).loops
    assert loop.reasons[0].code == "UNROLL-STEPS"


@pytest.mark.parametrize(
    ("options", "code"),
    [({"max_unroll": 0}, "UNROLL-OFF"), ({"skip": ["unroll"]}, "NO-RULE"), ({"passes": ["loop-fission"]}, "NO-RULE")],
)
def test_nodes_that_are_not_to_be_unrolled_count_as_left(options: dict[str, Any], code: str) -> None:
    (node,) = ortscan.explain(recurrent("GRU")[0], target="nnapi", **options).loops_left
    assert (node.kind, node.fate, [reason.code for reason in node.reasons]) == ("GRU", "kept", [code])


def test_other_targets_leave_them_alone():
    for target in ("cpu", "cuda", "onnx", "tensorrt"):
        model, _ = recurrent("LSTM", peepholes=True)
        assert ops(ortscan.optimize(model, target=target)) == ["LSTM"]
        assert not ortscan.explain(model, target=target).loops
