"""A Scan without steps makes onnxruntime refuse some models; without that Scan the result must not crash the process."""

import subprocess
import sys

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers, drawn
from tests.support.text import ort_run, parsed

TWO_SCANS = """g (float[?,?,4] x, float[?,3] w) => (float[?,?,?] y, float[?,?] z) {
    y = Scan <num_scan_inputs = 1, scan_input_axes = [1], body = b (float[?,?] e) => (float[?,?] v) { v = Cos (e) }> (x)
    z = Scan <num_scan_inputs = 1, body = c (float[3] e) => (float[3] v) { v = Identity (e) }> (w) }"""
GRU = """g (float[N,T,B,3] x) => (float[N,T,1,B,2] y) {
    y = Scan <num_scan_inputs = 1, body = b (float[T,B,3] e) => (float[T,1,B,2] v) { f = Relu (e) v = GRU <hidden_size = 2> (f, w, r) }> (x) }"""
EINSUM = """g (float[N,B,3,4] x) => (float[N,B,3,3] y) {
    y = Scan <num_scan_inputs = 1, body = b (float[B,3,4] e) => (float[B,3,3] v) {
        f = Relu (e) v = Einsum <equation = "bij,bkj->bik"> (e, f) }> (x) }"""


def _model(text: str) -> onnx.ModelProto:
    return parsed(text, weights=drawn(w=(1, 6, 3), r=(1, 6, 2)) if "GRU" in text else None)


def _feeds(model: onnx.ModelProto, *sizes: int) -> dict[str, np.ndarray]:
    free = iter(sizes)
    shapes = {i.name: [d.dim_value or next(free) for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    return {name: np.random.default_rng(1).normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def _lives(model: onnx.ModelProto, feeds: dict[str, np.ndarray], tmp_path) -> bool:
    """Return True if a process that runs ``model`` does not crash, whether or not the run fails."""
    onnx.save(model, tmp_path / "m.onnx")
    np.savez(tmp_path / "f.npz", **feeds)
    code = """
import sys, numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
try: session.run(None, dict(numpy.load(sys.argv[2])))
except Exception: pass
"""
    command = [sys.executable, "-c", code, str(tmp_path / "m.onnx"), str(tmp_path / "f.npz")]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize("options", [{"passes": ["loop-fission"]}, {"skip": ["scan-axes"]}, {}])
def test_scanned_axes_are_moved_whichever_rules_are_chosen(options, tmp_path) -> None:
    model = _model(TWO_SCANS)
    after = ortscan.optimize(model, verify=False, **options)
    assert [node.op_type for node in after.graph.node if node.op_type == "Scan"] != ["Scan", "Scan"]
    assert not any(attribute.name == "scan_input_axes" for node in after.graph.node for attribute in node.attribute)
    assert_same_numbers(ort_run(after, _feeds(model, 2, 3, 2)), ort_run(model, _feeds(model, 2, 3, 2)))
    assert _lives(after, _feeds(model, 2, 0, 0), tmp_path)


def test_scanned_axes_are_moved_where_a_scan_goes_that_nobody_reads(tmp_path) -> None:
    model = _model(TWO_SCANS.replace("v = Identity (e)", "v = Sin (e)").replace(", float[?,?] z)", ")"))
    after = ortscan.optimize(model, passes=["one-trip"], verify=False)
    assert not any(attribute.name == "scan_input_axes" for node in after.graph.node for attribute in node.attribute)
    assert _lives(after, _feeds(model, 2, 0, 0), tmp_path)


def test_nothing_is_moved_in_a_model_that_no_rule_changes() -> None:
    text = TWO_SCANS.replace("v = Identity (e)", "v = Sin (e)")
    after = ortscan.optimize(_model(text), passes=["one-trip"], verify=False)
    assert [node.op_type for node in after.graph.node] == ["Scan", "Scan"]
    assert any(attribute.name == "scan_input_axes" for attribute in after.graph.node[0].attribute)


@pytest.mark.parametrize(("text", "sizes", "kind"), [(GRU, (2, 3, 1), "GRU"), (EINSUM, (2, 3), "Einsum")])
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_a_node_of_a_body_that_runs_once_for_all_steps_survives_none(text, sizes, kind, target, tmp_path) -> None:
    model = _model(text)
    after = ortscan.optimize(model, target=target, verify=False)
    assert "Scan" not in {node.op_type for node in after.graph.node}
    assert ortscan.optimize(after, target=target, verify=False) == after
    assert_same_numbers(ort_run(after, _feeds(model, *sizes)), ort_run(model, _feeds(model, *sizes)))
    assert _lives(model, _feeds(model, 0, *sizes[1:]), tmp_path)
    assert _lives(after, _feeds(model, 0, *sizes[1:]), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("equation", ["tbi,tci->tbc", "tbi,sbi->ts", "tbi,tbi", "tbi,tbi->", "tbi,tbj->bji"])
@pytest.mark.parametrize("inside", ["v = Relu (e)", "v = Identity (e)"])
def test_an_einsum_beside_a_scan_that_is_gone_survives_no_steps(equation: str, inside: str, tmp_path) -> None:
    model = _model(
        f"""g (float[T,B,3] x) => (float y, float[T,B,3] z) {{ y = Einsum <equation = "{equation}"> (x, x)
            z = Scan <num_scan_inputs = 1, body = b (float[B,3] e) => (float[B,3] v) {{ {inside} }}> (x) }}"""
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    after = ortscan.optimize(model, verify=False)
    assert ortscan.optimize(after, verify=False) == after
    for sizes in ((2, 3), (1, 1), (1, 2)):
        assert_same_numbers(ort_run(after, _feeds(model, *sizes)), ort_run(model, _feeds(model, *sizes)))
    for sizes in ((0, 2), (0, 0)):
        assert _lives(after, _feeds(model, *sizes), tmp_path)


def test_an_einsum_of_known_sizes_or_beside_a_scan_that_stays_is_left_as_it_is() -> None:
    text = """g (float[4,2,3] x, float[3] h) => (float[4,2,2] y, float[4,2,3] z, float[3] l) {{ y = Einsum <equation = "tbi,tci->tbc"> (x, x)
        l, z = Scan <num_scan_inputs = 1, body = b (float[3] s, float[2,3] e) => (float[3] n, float[2,3] v) {{
            m = Sin (s) n = Add (m, s) v = {} (e) }}> (h, x) }}"""
    after = ortscan.optimize(_model(text.format("Relu")), verify=False)
    assert "If" not in {node.op_type for node in after.graph.node}
