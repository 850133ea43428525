"""Every form of an opset-8 Scan, in later opsets, against onnxruntime's own opset-8 Scan."""

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ortscan
from ortscan.migration import migrated
from ortscan.modelio import to_caller_type
from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.scan_8_matrix import Form, some_forms
from tests.support.scans import ScanCase, scan_models
from tests.support.text import parsed

TARGETS = (9, 11, 16, 21, 26)
FORMS = some_forms(200)


def assert_migrates(form: Form, target: int) -> None:
    model = form.model()
    loaded, report = migrated(model, target)
    result = to_caller_type(loaded)
    onnx.checker.check_model(result, full_check=True)
    assert len(report.scans) == 1 + (form.nested == "Scan")
    assert [value.SerializeToString() for value in result.graph.input] == [value.SerializeToString() for value in model.graph.input]
    assert [value.SerializeToString() for value in result.graph.output] == [
        value.SerializeToString() for value in model.graph.output
    ]
    feeds = form.feeds()
    assert_same_numbers(ort_run(result, feeds), ort_run(model, feeds))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("part", range(10))
def test_every_form_of_an_opset_8_scan(part, target):
    for number, form in enumerate(FORMS[part::10]):
        if (number + part) % len(TARGETS) == TARGETS.index(target):
            assert_migrates(form, target)


@pytest.mark.long
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(scan_models(opset=8), st.sampled_from(TARGETS))
def test_a_random_opset_8_scan(case: ScanCase, target: int):
    loaded, _ = migrated(case.model, target)
    assert_same_numbers(ort_run(to_caller_type(loaded), case.feeds), ort_run(case.model, case.feeds))


@settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
@given(scan_models(opset=8, direct_outputs=True), st.sampled_from(TARGETS))
def test_an_opset_8_scan_that_onnxruntime_computes_wrongly_is_repaired(case: ScanCase, target: int):
    loaded, _ = migrated(case.model, target)
    assert_same_numbers(ort_run(to_caller_type(loaded), case.feeds), run_model(case.model, case.feeds), rtol=1e-4, atol=1e-5)


SUM = """g (float[{b}2] initial, float[{b}3,2] x) => (float[{b}2] y, float[{b}3,2] z) {{
    y, z = Scan <num_scan_inputs = 1, body = scan_body (float[2] sum_in, float[2] next) => (float[2] sum_out, float[2] scan_out) {{
        sum_out = Add (sum_in, next) scan_out = Identity (sum_out)
    }}> ({lens}initial, x) }}"""


@pytest.mark.parametrize("target", TARGETS)
def test_the_examples_of_the_operators_text(target):
    x, total = np.array([[1, 2], [3, 4], [5, 6]], np.float32), np.array([9, 12], np.float32)
    sums = np.array([[1, 2], [4, 6], [9, 12]], np.float32)
    for opset, batch, lens, shape in ((8, "1,", ",", (1,)), (9, "", "", ())):
        text = SUM.format(b=batch, lens=lens)
        model = parsed(f'<ir_version: 4, opset_import: ["": {opset}]>' + text)
        feeds = {"initial": np.zeros((*shape, 2), np.float32), "x": x.reshape(*shape, 3, 2)}
        result = ort_run(ortscan.migrate(model, target), feeds)
        assert_same_numbers(result, [total.reshape(*shape, 2), sums.reshape(*shape, 3, 2)])


LSTM = """g (int64[B] lens, float[B,3] h0, float[B,3] c0, float[B,T,2] xs) => (float[B,3] hn, float[B,3] cn, float[B,T,3] ys) {{
    hn, cn, ys = Scan <num_scan_inputs = 1, directions = [{direction}],
        body = cell (float[3] h, float[3] c, float[2] x) => (float[3] h1, float[3] c1, float[3] y) {{
            x1 = Unsqueeze <axes = [0]> (x) h0r = Unsqueeze <axes = [0]> (h) xh = Concat <axis = 1> (x1, h0r)
            z = Gemm <transB = 1> (xh, W, b) i0, o0, f0, g0 = Split <axis = 1> (z)
            i = Sigmoid (i0) o = Sigmoid (o0) f = Sigmoid (f0) u = Tanh (g0)
            iu = Mul (i, u) fc = Mul (f, c) cc = Add (iu, fc) tc = Tanh (cc) hh = Mul (o, tc)
            c1 = Reshape (cc, three) h1 = Squeeze <axes = [0]> (hh) y = Identity (h1)
        }}> (lens, h0, c0, xs) }}"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("direction", [0, 1])
def test_an_lstm_as_the_first_exporters_wrote_it(direction, target):
    rng = np.random.default_rng(1)
    model = parsed('<ir_version: 4, opset_import: ["": 8]>' + LSTM.format(direction=direction))
    weights = {"W": rng.standard_normal((12, 5)).astype(np.float32), "b": rng.standard_normal(12).astype(np.float32)}
    weights["three"] = np.array([3])
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    for lengths in ([5, 5, 5, 5], [1, 4, 5, 2]):
        feeds = {"lens": np.array(lengths), "xs": rng.standard_normal((4, 5, 2)).astype(np.float32)}
        feeds |= {name: rng.standard_normal((4, 3)).astype(np.float32) for name in ("h0", "c0")}
        loaded, report = migrated(model, target)
        assert [scan.form for scan in report.scans] == ["batched"]
        assert_same_numbers(ort_run(to_caller_type(loaded), feeds), ort_run(model, feeds))
