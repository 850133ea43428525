"""The operators that targets run, and the placement that `explain` reports."""

from dataclasses import fields

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.errors import OptionError
from ortscan.ort.installed import newest_ir_version, newest_opset
from ortscan.targets import MOST_NODES, TARGETS, target_named, unroll_limits
from rewrites.base.abilities import Recurrent
from tests.campaigns.providers import abilities, record
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text, parsed

WITHOUT_LOOPS = ["directml", "webgpu", "coreml", "nnapi", "qnn", "openvino"]
SUM = """g (float[{steps}, 2] xs, float[2] s0) => (float[2] sT, float[N, 2] ys) {{
    sT, ys = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] x) => (float[2] s1, float[2] y) {{
        a = Sin (s) s1 = Add (a, x) y = Cos (s1) }}> (s0, xs) }}"""
LSTM = """<ir_version: 10, opset_import: ["": 18]> g (float[{steps}, 1, 2] xs, float[1, 3] h0, float[1, 3] c0) => (float[1, 3] hT) {{
    hT, cT = Scan <num_scan_inputs = 1, body = b (float[1, 3] h, float[1, 3] c, float[1, 2] x) => (float[1, 3] h1, float[1, 3] c1) {{
        u = MatMul (x, W) v = MatMul (h, R) z = Add (u, v) i, o, f, g = Split <axis = 1, num_outputs = 4> (z)
        i1 = Sigmoid (i) o1 = Sigmoid (o) f1 = Sigmoid (f) g1 = Tanh (g) p = Mul (f1, c) q = Mul (i1, g1) c1 = Add (p, q)
        t = Tanh (c1) h1 = Mul (o1, t) }}> (h0, c0, xs) }}"""


def summing(steps: int | str = 4) -> onnx.ModelProto:
    return model_from_text(SUM.format(steps=steps), 18, check=False)


def lstm(steps: int | str = 4) -> onnx.ModelProto:
    model = parsed(LSTM.format(steps=steps))
    for name, shape in (("W", (2, 12)), ("R", (3, 12))):
        values = [((7 * i) % 11 - 5) / 10 for i in range(shape[0] * shape[1])]
        model.graph.initializer.append(onnx.helper.make_tensor(name, onnx.TensorProto.FLOAT, shape, values))
    return model


SEEN = [seen for seen in record.kept() if seen["target"] in TARGETS]


@pytest.mark.parametrize("seen", SEEN, ids=lambda seen: seen["name"])
def test_the_row_of_a_target_says_what_was_seen_on_its_provider(seen):
    target = TARGETS[seen["target"]]
    runs = {each["name"]: each["verdict"] == "runs" for each in seen["abilities"]}
    assert {op for op in ("Scan", "Loop", "If") if runs[op]} == target.control_flow
    assert {op for op in ("RNN", "GRU", "LSTM") if runs[op]} == set(target.recurrent)
    assert (target.bidirectional != "never") == all(runs[f"{op}, bidirectional"] for op in target.recurrent)
    limits = [each for each in seen["abilities"] if each["limit"] and each["operator"] in target.recurrent]
    assert {each["limit"] for each in limits} == {limit.name for limit in fields(Recurrent)}
    for each in limits:
        assert getattr(target.recurrent[each["operator"]], each["limit"]) == runs[each["name"]], each["name"]
    newest = max(int(name.removeprefix("opset ")) for name in runs if name.startswith("opset ") and runs[name])
    asked = max(int(name.removeprefix("opset ")) for name in runs if name.startswith("opset "))
    assert target.recurrent_until == (None if newest == asked else newest)


@pytest.mark.parametrize("seen", SEEN, ids=lambda seen: seen["name"])
def test_what_optimize_makes_was_equal_on_the_provider_wherever_the_original_was(seen):
    equal = {when: [each["name"] for each in seen["models"] if each[when]["became"] == "equal"] for when in ("before", "after")}
    assert set(equal["before"]) <= set(equal["after"])
    assert not any(each["after"]["became"].startswith("differs") for each in seen["models"])


def ops(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node}


@pytest.mark.parametrize("target", WITHOUT_LOOPS)
def test_targets_without_loops_get_none(target):
    assert not ops(ortscan.optimize(summing(), target=target, verify=True)) & {"Scan", "Loop", "If"}


@pytest.mark.parametrize("target", sorted(set(TARGETS) - set(WITHOUT_LOOPS)))
def test_targets_with_loops_keep_those_that_would_not_gain(target):
    assert "Scan" in ops(ortscan.optimize(summing(), target=target))


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_recurrent_nodes_are_those_that_the_target_has(target):
    found = ops(ortscan.optimize(lstm(), target=target, verify=True))
    assert found & {"RNN", "GRU", "LSTM", "Scan"} == ({"LSTM"} if "LSTM" in TARGETS[target].recurrent else set())


@pytest.mark.parametrize("target", ["coreml", "nnapi"])
def test_a_cell_that_cannot_be_written_out_is_native_where_it_falls_back_to_the_cpu(target):
    after = ortscan.optimize(lstm("T"), target=target, verify=True)
    guard = next(node for node in after.graph.node if node.op_type == "If")
    assert {node.op_type for attribute in guard.attribute for node in attribute.g.node} >= {"LSTM"}
    assert "LSTM" in ops(ortscan.optimize(lstm(5000), target=target))
    assert "LSTM" in ops(ortscan.optimize(lstm(5), target=target, max_unroll=4))
    fixed = ortscan.optimize(lstm("T"), target=target, fix_shapes={"xs": [5, 1, 2]}, verify=True)
    assert not ops(fixed) & {"LSTM", "Scan", "If"}


def test_a_loop_whose_recurrent_node_the_target_lacks_is_not_gone() -> None:
    report = ortscan.explain(lstm("T"), target="nnapi")
    assert (report.answer.loops, report.answer.gone) == (1, 0)
    assert str(report).startswith("0 of 1 loop gone · not timed: the target is nnapi")
    assert "rewritten (a recurrent node left that the target does not run) (UNROLL-UNKNOWN)" in str(report)
    assert ortscan.explain(lstm(4), target="nnapi").answer.gone == 1


def test_cudnn_has_no_lstm_with_other_activations_and_says_so():
    model = lstm()
    body = next(node for node in model.graph.node if node.op_type == "Scan").attribute[1].g
    next(node for node in body.node if node.op_type == "Tanh").op_type = "Softsign"
    report = ortscan.explain(model, target="cuda")
    (loop,) = report.loops
    assert "CELL-TARGET" in [reason.code for reason in loop.reasons]
    assert loop.runs == "a loop, on cuda"
    assert "LSTM" in ops(ortscan.optimize(model, target="tensorrt", verify=True))


@pytest.mark.parametrize(
    ("model", "target", "runs"),
    [
        (summing(), "coreml", "unrolled into 12 nodes, on coreml"),
        (lstm(), "qnn", "native LSTM, on qnn"),
        (summing("T"), "nnapi", "a loop, which nnapi does not run: it falls back to onnxruntime's CPU"),
        (lstm("T"), "coreml", "native LSTM, which coreml does not run: it falls back to onnxruntime's CPU"),
        (summing(), "cuda", "a loop, on cuda"),
        (summing(), "cpu", ""),
    ],
)
def test_explain_says_where_what_becomes_of_a_loop_runs(model, target, runs):
    loop = ortscan.explain(model, target=target).loops[0]
    assert loop.runs == runs


def test_explain_names_what_the_target_has_and_the_newest_opset():
    assert ortscan.explain(summing(), target="qnn").messages == [
        f"qnn runs If, LSTM and GRU, and has no Scan, Loop or RNN; opset {newest_opset()} and IR version {newest_ir_version()} at most"
    ]
    assert ortscan.explain(summing()).messages == []


def test_a_billion_steps_are_refused_with_the_number_of_nodes_they_would_be():
    (loop,) = ortscan.explain(summing(10**9), target="coreml").loops
    details = {reason.code: reason.detail for reason in loop.reasons}
    assert details["UNROLL-NODES"] == "1000000000 steps make 3000000004 nodes, more than the 20000 allowed"


def test_max_unroll_counts_steps_for_any_target():
    assert "Scan" not in ops(ortscan.optimize(summing(), max_unroll=4, verify=True))
    assert "Scan" in ops(ortscan.optimize(summing(), max_unroll=3))
    assert "Scan" in ops(ortscan.optimize(summing(), target="coreml", max_unroll=3))
    assert "Scan" in ops(ortscan.optimize(summing(), target="coreml", max_unroll=0))
    assert unroll_limits(TARGETS["cpu"], 100).nodes == MOST_NODES


def test_an_unknown_target_is_named():
    with pytest.raises(OptionError, match="'tpu'"):
        target_named("tpu")


ROWS_OF_LENGTHS = """<ir_version: 4, opset_import: ["": 8]>
g (int64[B] lengths, float[B, 2] h0, float[B, T, 2] xs) => (float[B, 2] hT, float[B, T, 2] ys) {{
    hT, ys = Scan <num_scan_inputs = 1, directions = [{reverse}], body = b (float[2] h, float[2] x) => (float[2] h1, float[2] y) {{
        a = Sin (h) h1 = Add (a, x) y = Identity (h1) }}> (lengths, h0, xs) }}"""


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("lengths", [[2, 4, 1], [4, 4, 4], [3]])
def test_rows_of_their_own_lengths_are_written_out_to_the_end(lengths, reverse):
    model = parsed(ROWS_OF_LENGTHS.format(reverse=reverse))
    rows = len(lengths)
    after = ortscan.optimize(model, target="coreml", fix_shapes={"xs": [rows, 4, 2]}, verify=False)
    assert not ops(after) & {"Scan", "Loop", "If"}
    draw = np.random.default_rng(rows).standard_normal
    feeds = {"h0": draw((rows, 2)).astype(np.float32), "xs": draw((rows, 4, 2)).astype(np.float32)}
    feeds["lengths"] = np.array(lengths)
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds), 1e-5, 1e-6)


@pytest.mark.parametrize("opset", [22, 25])
def test_for_webgpu_recurrent_nodes_are_written_in_the_newest_opset_that_it_runs_them_in(opset):
    model = lstm()
    model.opset_import[0].version = opset
    after = ortscan.optimize(model, target="webgpu", verify=True)
    assert (ops(after) & {"LSTM", "Scan"}, after.opset_import[0].version) == ({"LSTM"}, 21)
    assert ortscan.optimize(model, target="qnn").opset_import[0].version == opset
    assert ortscan.optimize(model, target="webgpu", opset="keep").opset_import[0].version == opset


def test_a_model_without_recurrences_keeps_its_opset_for_webgpu():
    model = model_from_text("g (float[2] x) => (float[2] y) { a = Sin (x) b = Neg (a) y = Neg (b) }", 23)
    assert ortscan.optimize(model, target="webgpu").opset_import[0].version == 23


@pytest.mark.parametrize(
    ("target", "attributes"), [("openvino", "peepholes"), ("openvino", "coupled gates"), ("qnn", "coupled gates")]
)
def test_an_lstm_that_its_provider_would_compute_wrongly_is_written_out(target, attributes):
    asked = next(each for each in abilities.ABILITIES if each.name == f"LSTM, {attributes}")
    model = abilities.model_of(asked)
    after = ortscan.optimize(model, target=target, verify=True)
    assert "LSTM" not in ops(after)
    feeds = abilities.feeds(model)
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds), 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("gpu", "'cuda'"),
        ("CUDAExecutionProvider", "'cuda'"),
        ("trt", "'tensorrt'"),
        ("npu", "'coreml' or 'qnn' or 'openvino'"),
        ("rocm", "'onnx'"),
        ("tensort", "'tensorrt'"),
    ],
)
def test_another_word_for_a_target_is_understood(word, meant):
    with pytest.raises(
        OptionError, match=f"^target: '{word}' is not known, perhaps {meant} was meant; the targets are onnx, cpu, "
    ):
        target_named(word)


def test_a_word_that_is_near_to_no_target_gets_the_list():
    with pytest.raises(OptionError, match=r"^target: 'toaster' is not known; the targets are "):
        target_named("toaster")
