import importlib
import json
import re
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx.backend.test.case import node as node_cases

import ortscan
from ortscan.__main__ import main
from ortscan.errors import OptionError, UnsupportedModel
from ortscan.ort.sessions import has_kernel
from ortscan.report.codes import CODES
from rewrites.python_ops.reference import reference_runs
from tests.support.python_calls import IN_A_SCAN, ONE, WORDS, session, survives
from tests.support.small_models import MAP, RECURRENCE
from tests.support.text import parsed

SCAN_OF_UINT64 = """
<ir_version: 8, opset_import: ["": 18]> g (uint64[4] h, uint64[T, 4] x) => (uint64[4] last, uint64[T, 4] ys) {
  last, ys = Scan <num_scan_inputs = 1, scan_output_directions = [1], body = b (uint64[4] s, uint64[4] xt) => (uint64[4] n, uint64[4] y) {
    g = Greater (xt, s) m = Where (g, xt, s) n = Add (m, xt) y = Identity (n)
  }> (h, x)
}
"""
SCAN_OF_BFLOAT16 = """
<ir_version: 8, opset_import: ["": 18]> g (float[4] h, float[T, 4] x) => (float[4] last) {
  hb = Cast <to = 16> (h) xb = Cast <to = 16> (x)
  l, ys = Scan <num_scan_inputs = 1, body = b (bfloat16[4] s, bfloat16[4] xt) => (bfloat16[4] n, bfloat16[4] y) {
    m = Tanh (s) n = Add (m, xt) y = Identity (n)
  }> (hb, xb)
  last = Cast <to = 1> (l)
}
"""


def fates(made: ortscan.InferenceSession) -> list[tuple[str, str]]:
    return [(gap.operator, gap.fate) for gap in made.ortscan.report.kernel_gaps]


def erf(x: np.ndarray) -> np.ndarray:
    from math import erf

    return np.vectorize(erf, otypes=[np.float64])(x)


def test_a_node_without_a_kernel_is_called_in_python() -> None:
    made = session(ONE, verify="quick")
    assert fates(made) == [("Erf", "python")]
    assert re.match(r"equal on \d+ cases \(worst error 0\)", made.ortscan.verified)
    a = np.linspace(-2, 2, 3)
    np.testing.assert_allclose(made.run(None, {"a": a})[0], erf(a), rtol=1e-15)
    assert made.run(None, {"a": a[:0]})[0].shape == (0,)


@pytest.mark.long
def test_scalars_and_values_of_equal_type_are_passed():
    text = """
    <ir_version: 8, opset_import: ["": 18]> g (uint64 a, uint64[2, N] b, bool[2, N] c) => (uint64 y, uint64[K, L] z) {
      t = Constant <value_ints = [0]> () y = Where (f, a, a) z = Where (c, b, a)
    }
    """.replace("t = Constant <value_ints = [0]> ()", "f = Constant <value = bool {1}> ()")
    made = session(text)
    for n in (0, 3):
        b = np.arange(2 * n, dtype=np.uint64).reshape(2, n)
        y, z = made.run(None, {"a": np.array(1 << 63, np.uint64), "b": b, "c": b % 2 == 0})
        assert y.shape == ()
        assert y == 1 << 63
        np.testing.assert_array_equal(z, np.where(b % 2 == 0, b, np.uint64(1 << 63)))


@pytest.mark.long
def test_integers_are_passed_beside_the_shapes():
    text = """
    <ir_version: 8, opset_import: ["": 18]> g (uint64[N, M] x, int64[1] k) => (uint64[N, K] v, int64[N, K] i) { v, i = TopK (x, k) }
    """
    made = session(text)
    assert fates(made) == [("TopK", "python")]
    x = np.random.default_rng(0).permutation(12).reshape(2, 6).astype(np.uint64)
    for k in (0, 1, 4):
        v, i = made.run(None, {"x": x, "k": np.array([k])})
        np.testing.assert_array_equal(v, -np.sort(-x.astype(np.int64))[:, :k])
        np.testing.assert_array_equal(i, np.argsort(-x.astype(np.int64))[:, :k])


def test_a_node_that_a_wider_type_runs_needs_no_python():
    text = '<ir_version: 8, opset_import: ["": 18]> g (int16[N] a, int16[N] b) => (int16[N] y) { y = Max (a, b) }'
    made = session(text)
    assert fates(made) == [("Max", "wider")]
    assert "ortscan.custom_ops" not in made.get_modelmeta().custom_metadata_map
    a, b = np.array([-32768, 5, 32767], np.int16), np.array([0, 6, -1], np.int16)
    np.testing.assert_array_equal(made.run(None, {"a": a, "b": b})[0], np.maximum(a, b))


def test_a_scan_of_bfloat16_runs_in_float_between_casts():
    made = session(SCAN_OF_BFLOAT16)
    assert "python" not in {fate for _, fate in fates(made)}
    h, x = np.zeros(4, np.float32), np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    state = h.astype(ml_dtypes.bfloat16)
    for step in x.astype(ml_dtypes.bfloat16):
        state = (np.tanh(state.astype(np.float32)).astype(ml_dtypes.bfloat16) + step).astype(ml_dtypes.bfloat16)
    np.testing.assert_allclose(made.run(None, {"h": h, "x": x})[0], state.astype(np.float32), rtol=1e-2)


def test_a_node_in_a_scan_is_called_at_each_step():
    made = session(IN_A_SCAN)
    assert fates(made) == [("Erf", "python")]
    h, x = np.zeros(2), np.random.default_rng(0).standard_normal((5, 2))
    state, rows = h, []
    for step in x:
        state = erf(state) + step
        rows.append(state)
    last, ys = made.run(None, {"h": h, "x": x})
    np.testing.assert_allclose(last, state, rtol=1e-14)
    np.testing.assert_allclose(ys, rows, rtol=1e-14)


@pytest.mark.long
@pytest.mark.parametrize("steps", [0, 1, 6])
def test_a_scan_of_elementwise_operators_is_called_as_a_whole(steps: int):
    made = session(SCAN_OF_UINT64)
    assert fates(made) == [("Scan", "python")]
    assert "Scan" not in made.ortscan.report.operators_after
    assert [loop.fate for loop in made.ortscan.report.loops] == ["removed"]
    h, x = np.zeros(4, np.uint64), np.random.default_rng(1).integers(0, 1 << 40, (steps, 4)).astype(np.uint64)
    state, rows = h, []
    for step in x:
        state = np.where(step > state, step, state) + step
        rows.insert(0, state)
    last, ys = made.run(None, {"h": h, "x": x})
    np.testing.assert_array_equal(last, state)
    np.testing.assert_array_equal(ys, np.array(rows, np.uint64).reshape(steps, 4))


@pytest.mark.long
@pytest.mark.parametrize("backwards", [0, 1])
@pytest.mark.parametrize(("axis", "out_axis"), [(0, 1), (1, 0), (-1, -1)])
def test_whole_scan_supports_any_axis_and_direction(axis: int, out_axis: int, backwards: int):
    out_backwards = (axis + backwards) % 2
    sizes = "4, T" if axis else "T, 4"
    out_sizes = "4, T" if out_axis else "T, 4"
    made = session(f"""
    <ir_version: 8, opset_import: ["": 18]>
    g (uint64[4] h, uint64[{sizes}] x, uint64[4] c) => (uint64[4] last, uint64[{out_sizes}] ys) {{
      last, ys = Scan <num_scan_inputs = 1, scan_input_axes = [{axis}], scan_output_axes = [{out_axis}],
        scan_input_directions = [{backwards}], scan_output_directions = [{out_backwards}],
        body = b (uint64[4] s, uint64[4] xt) => (uint64[4] n, uint64[4] y) {{
          g = Greater (xt, s) m = Where (g, xt, c) n = Add (m, xt) y = Identity (n)
        }}> (h, x)
    }}""")
    assert ("Scan", "python") in fates(made)
    h, c = np.full(4, 3, np.uint64), np.arange(4, dtype=np.uint64)
    rows = np.random.default_rng(2).integers(0, 9, (5, 4)).astype(np.uint64)
    state, stacked = h, []
    for row in rows[::-1] if backwards else rows:
        state = np.where(row > state, row, c) + row
        stacked.append(state)
    stack = np.stack(stacked[::-1] if out_backwards else stacked, out_axis)
    last, ys = made.run(None, {"h": h, "x": rows.T if axis else rows, "c": c})
    np.testing.assert_array_equal(last, state)
    np.testing.assert_array_equal(ys, stack)


def test_supported_nodes_are_not_called():
    for text in (MAP, RECURRENCE):
        made = session(text)
        assert fates(made) == []
        assert not any("ortscan" in name for name in made.ortscan.report.operators_after)


NODE_TESTS = {"BitCast": "python", "Max": "wider", "Min": "wider", "Pow": "python", "RoiAlign": "python", "TopK": "python"}


@pytest.mark.long
@pytest.mark.parametrize("operator", NODE_TESTS)
def test_onnx_node_tests_without_a_kernel_pass(operator: str):
    ran = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module(f"{node_cases.__name__}.{operator.lower()}")
    for case in node_cases._NodeTestCases:
        model = case.model
        if model is None or model.graph.node[0].op_type != operator or model.opset_import[0].version > 26:
            continue
        model.ir_version = 10
        if has_kernel(model) is not False:
            continue
        made = session(model)
        assert [fate for _, fate in fates(made)] == [NODE_TESTS[operator]]
        for inputs, outputs in case.data_sets:
            feeds = {info.name: array for info, array in zip(made.get_inputs(), inputs, strict=True)}
            for got, wanted in zip(made.run(None, feeds), outputs, strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-3)  # some are written down with four digits
        ran += 1
    assert ran


def test_operator_without_a_wider_type_is_not_widened():
    text = '<ir_version: 9, opset_import: ["": 20]> g (uint8[N] x) => (uint8[H, W, C] y) { y = ImageDecoder (x) }'
    report = ortscan.explain(parsed(text), custom_ops=True)
    assert [gap.fate for gap in report.kernel_gaps] == ["python"]


def test_custom_ops_are_off_by_default():
    assert ortscan.explain(parsed(ONE)).kernel_gaps == []
    assert [gap.fate for gap in ortscan.explain(parsed(ONE), custom_ops=True).kernel_gaps] == ["python"]
    with pytest.raises(OptionError, match="custom_ops must be True or False"):
        ortscan.optimize(parsed(ONE), custom_ops="yes")


REFUSED = {
    "PYTHON-OP-OPSET": '<ir_version: 8, opset_import: ["": 13]> g (double[N] a) => (double[N] y) { y = Erf (a) }',
    "PYTHON-OP-RANK": '<ir_version: 8, opset_import: ["": 18]> g (double[] a) => (double[] y) { y = Erf (a) }',
}


@pytest.mark.parametrize("code", REFUSED)
def test_uncallable_nodes_have_a_reason(code: str):
    report = ortscan.explain(parsed(REFUSED[code]), custom_ops=True)
    assert [(gap.fate, gap.code) for gap in report.kernel_gaps] == [("kept", code)]
    assert code in CODES
    assert code in report.messages[-1]


def test_imprecise_reference_is_not_used():
    text = """
        <ir_version: 8, opset_import: ["": 20]> g (double[1, 1, 4, 4] x, double[1, 2, 2, 2] p) => (double[1, 1, 2, 2] y) {
          y = GridSample (x, p)
        }"""
    reason = reference_runs(parsed(text))
    assert reason is not None
    assert (reason.code, reason.detail) == ("PYTHON-OP-REFERENCE", "the reference of GridSample computes in float32")
    assert reference_runs(parsed(text.replace("double", "float"))) is None


def test_report_has_the_cost_of_a_call():
    report = ortscan.explain(parsed(ONE), custom_ops=True)
    assert "each call costs 60 us at least (60 us, and 3 ns for each of about 64 numbers that it returns)" in report.messages[0]


def test_saved_model_has_metadata_and_runs_in_a_new_process(tmp_path: Path):
    path = tmp_path / "m.onnx"
    onnx.save(parsed(ONE), tmp_path / "in.onnx")
    assert main(["optimize", str(tmp_path / "in.onnx"), str(path), "--custom-ops", "--no-verify", "-q"]) == 0
    facts = json.loads({entry.key: entry.value for entry in onnx.load(path).metadata_props}["ortscan.custom_ops"])
    assert (facts["domain"], facts["version"], facts["calls"]) == ("ortscan.python", 1, 1)
    onnx.checker.check_model(onnx.load(path), full_check=True)
    code = f"""
path = {str(path)!r}
print(ort.InferenceSession(path, ortscan.register(ort.SessionOptions(), path)).run(None, {{"a": A}})[0].shape)
print(ortscan.InferenceSession(path).run(None, {{"a": A}})[0].shape)
made = ort.SessionOptions()
made.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
print(ortscan.InferenceSession(path, made).run(None, {{"a": A}})[0].shape)
"""
    assert survives(code).splitlines() == ["(2,)"] * 3


def test_model_of_a_later_version_is_refused():
    model = parsed(ONE)
    model.metadata_props.add(key="ortscan.custom_ops", value='{"version": 99}')
    with pytest.raises(UnsupportedModel, match="needs version 99 of the Python op; this ortscan has version 1"):
        ortscan.register(ort.SessionOptions(), model)
    with pytest.raises(OptionError, match=r"register needs onnxruntime\.SessionOptions, not dict"):
        ortscan.register({})


@pytest.mark.long
@pytest.mark.parametrize("text", [IN_A_SCAN, SCAN_OF_BFLOAT16])
def test_nodes_without_a_kernel_are_verified_against_the_reference(text: str):
    before = parsed(text)
    outcome = ortscan.verify(before, ortscan.optimize(before, custom_ops=True))
    assert outcome.ok, outcome.summary()
    assert any("onnx's reference ran" in note for note in outcome.notes)


def test_wrong_result_of_a_node_without_a_kernel_is_detected():
    before = parsed(ONE)
    wrong = ortscan.optimize(parsed(ONE.replace("Erf (a)", "Tanh (a)")))
    outcome = ortscan.verify(before, wrong)
    assert not outcome.ok
    assert not outcome.inconclusive


@pytest.mark.long
def test_several_results_of_equal_type_keep_their_order():
    made = session(WORDS)
    a, b = np.arange(3, dtype=np.uint64), np.arange(5, dtype=np.uint64)
    y, z = made.run(None, {"a": a, "b": b, "c": np.array(True)})
    np.testing.assert_array_equal(y, a)
    np.testing.assert_array_equal(z, b)


@pytest.mark.long
def test_async_run_reports_the_exception():
    import threading

    from tests.support.python_calls import behaving, options

    given = options()
    given.intra_op_num_threads = 2
    made = ortscan.InferenceSession(parsed(ONE), given)
    done, said = threading.Event(), []

    def run(values: object) -> None:
        raise ValueError("what went wrong")

    with behaving(run):
        made.run_async(None, {"a": np.ones(2)}, lambda results, _, error: (said.append(error), done.set()), None)
        assert done.wait(30)
    assert "ValueError: what went wrong" in said[0]
