"""Models that crash onnxruntime are not run, or run in a subprocess. If a test here fails, the test process crashes."""

import logging

import numpy as np
import onnx
import pytest

from ortscan.running import crash_risks, own_process
from ortscan.running.analysis import analyse
from ortscan.running.runner import Runner, SessionModel
from ortscan.running.specs import input_specs
from ortscan.verification import verify
from tests.support.text import model_from_text

SCAN = """
g (float[3, T] x, float[3] h) => (float[3] last, float[T, 3] y) {
  last, y = Scan <num_scan_inputs = 1, scan_input_axes = [AXIS], body = b (float[3] s, float[3] z) => (float[3] n, float[3] o) {
    n = Add(s, z)
    o = Tanh(n)
  }> (h, x)
}
"""
OUT = """
g (float[5, B] x) => (float[B, 5] y) {
  y = Scan <num_scan_inputs = 1, scan_output_axes = [1], body = b (float[B] z) => (float[B] o) { o = Tanh(z) }> (x)
}
"""
EINSUM = 'g (float[A, B, C] x) => (float[A, B, B] y) { y = Einsum <equation = "bij,bkj->bik"> (x, x) }'
ATTENTION = "g (float[A, H, B, C] q, float[A, H, S, C] k) => (float[A, H, B, C] y) { y = Attention(q, k, k) }"
UNIQUE = "g (float[A, B] x) => (float[N, B] y) { y = Unique <axis = 0> (x) }"
CONV = "g (float[A, B, 7, 7] x, float[K, B, 3, 3] w) => (float[A, K, 5, 5] y) { y = Conv(x, w) }"
CUT = """
g (float[3, T] x) => (float[N, 3] y) <int64[1] one = {1}, int64[1] far = {99}> {
  rest = Slice(x, one, far, one)
  y = Scan <num_scan_inputs = 1, scan_input_axes = [1], body = b (float[3] z) => (float[3] o) { o = Tanh(z) }> (rest)
}
"""
NORM = "g (float[A, C] x, float[C] w) => (float[A, C] y) { y = com.microsoft.SkipLayerNormalization(x, x, w) }"


def model(text):
    imports = '"": 23, "com.microsoft": 1'
    return model_from_text(f"<ir_version: 10, opset_import: [{imports}]>\n{text}", check=False)


@pytest.mark.parametrize("text", [SCAN.replace("AXIS", "1"), SCAN.replace("AXIS", "-1"), OUT, EINSUM, ATTENTION, UNIQUE, CONV])
def test_sizes_of_zero_never_reach_an_operator_that_dies_of_them(text):
    outcome = verify(model(text), model(text))
    assert outcome.ok, outcome.summary()
    assert not any(0 in case.dims.values() for case in outcome.cases)
    assert "sizes of zero were not tried" in outcome.summary()


def test_sizes_of_zero_do_reach_a_scan_over_axis_0_and_a_convolution_with_weights():
    conv = model(CONV.replace(", float[K, B, 3, 3] w", "").replace("[A, B,", "[A, 1,").replace("[A, K,", "[A, 1,"))
    conv.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((1, 1, 3, 3), np.float32), "w"))
    scan = model(SCAN.replace("AXIS", "0").replace("[3, T] x", "[T, 3] x"))
    for proto in (conv, scan):
        outcome = verify(proto, proto)
        assert outcome.ok, outcome.summary()
        assert any(0 in case.dims.values() for case in outcome.cases)


def test_computed_sizes_of_zero_never_reach_it_either():
    text = SCAN.replace("AXIS", "1").replace("float[3, T] x,", 'float[3, "T - 1"] x, float[T] q,')
    proto = model(text.replace('"T - 1"', "U"))
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "T - 1"
    proto.graph.output[1].type.tensor_type.shape.dim[0].dim_param = "T - 1"
    outcome = verify(proto, proto)
    assert outcome.ok, outcome.summary()
    assert {case.dims["T"] for case in outcome.cases} >= {2, 3, 7}
    assert all(case.dims["T - 1"] for case in outcome.cases)


def test_a_size_of_zero_inside_the_original_is_a_case_that_is_skipped():
    outcome = verify(model(CUT), model(CUT))
    assert outcome.ok, outcome.summary()
    (skipped,) = (case for case in outcome.cases if case.status == "skipped")
    assert skipped.dims == {"T": 1}
    assert "onnxruntime crashes its process" in skipped.reason


def test_a_result_that_kills_the_process_is_a_finding():
    safe = "t = Transpose <perm = [1, 0]> (rest) y = Tanh(t)"
    outcome = verify(model(CUT[: CUT.index("y = Scan")] + safe + "\n}"), model(CUT))
    assert not outcome.ok
    assert "the result fails where the original runs (T=1): onnxruntime crashes its process" in outcome.summary()


def test_what_a_session_says_and_computes_is_the_same_in_a_process_of_its_own():
    proto, feed = model(NORM), {"x": np.ones((2, 3), np.float32), "w": np.ones(3, np.float32)}
    source = SessionModel(proto.SerializeToString(), None)
    here, there = (
        Runner(source, ["y"], ["CPUExecutionProvider"]),
        own_process.OwnProcessRunner(source, ["y"], ["CPUExecutionProvider"]),
    )
    try:
        np.testing.assert_array_equal(here.run(feed).values[0], there.run(feed).values[0])
        assert here.run({}).error == there.run({}).error
    finally:
        there.close()
    broken = SessionModel(b"", None)
    unmade = own_process.OwnProcessRunner(broken, ["y"], ["CPUExecutionProvider"])
    assert unmade.error == Runner(broken, ["y"], ["CPUExecutionProvider"]).error
    unmade.close()


def test_the_process_ends_with_the_verification(monkeypatch):
    made = []
    real = own_process.subprocess.Popen
    monkeypatch.setattr(own_process.subprocess, "Popen", lambda *args, **kw: made.append(real(*args, **kw)) or made[-1])
    assert verify(model(NORM), model(NORM)).ok
    assert len(made) == 2
    assert all(process.returncode is not None for process in made)


@pytest.mark.parametrize(
    ("text", "may_crash"), [(SCAN.replace("AXIS", "1"), False), (CUT, True), (NORM, True), (EINSUM, False), (OUT, False)]
)
def test_a_process_of_its_own_is_for_what_might_meet_emptiness_or_is_not_known(text, may_crash):
    proto = model(text)
    assert crash_risks.may_crash(proto, analyse(proto, input_specs(proto.graph))) == may_crash


NO_STANDARD = """
<ir_version: 9, opset_import: ["com.microsoft": 1]>
g (float[T, 2] z, float[2] x) => (float[2] y, float[T, 2] o) {
  y, o = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] s) => (float[2] n, float[2] oo) { n = Add(h, s) oo = Tanh(n) }> (x, z)
}
"""


def test_a_model_that_imports_no_standard_operators_has_the_newest(caplog):
    proto = model_from_text(NO_STANDARD, check=False)
    with caplog.at_level(logging.WARNING):
        outcome = verify(proto, proto)
    assert outcome.ok, outcome.summary()
    assert {case.dims["T"] for case in outcome.cases} >= {0, 1, 2, 3, 7}
    assert "chosen without reading" not in outcome.summary()
    assert caplog.text == ""


def test_an_original_that_dies_of_its_casts_is_told_of_and_kills_nothing():
    model = model_from_text(
        """g (float16[2, 5, 4] x, float[4, 3] w) => (float[5, 2, 3] y) {
            t = Transpose <perm = [1, 0, 2]> (x) c = Cast <to = 1> (t) y = MatMul (c, w) }""",
        18,
    )
    outcome = verify(model, model)
    assert not outcome.ok
    assert "crashes its process (SIGSEGV)" in outcome.summary()


COUNTED = """
g (int64[N] n, float[2] x) => (float[2] y) {{
  none = Constant <value = int64[0] {{}}> () no = Constant <value = bool[0] {{}}> ()
  y = Loop ({count}, "", x) <body = b (int64 i, bool c, float[2] s) => (bool{empty} d, float[2] o) {{ d = Identity ({go}) o = Neg (s) }}>
}}"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"count": "none", "empty": "", "go": "c"}, "inconclusive"),
        ({"count": "n", "empty": "[0]", "go": "no"}, "equal"),
        ({"count": "n", "empty": "", "go": "c"}, "equal"),
    ],
)
def test_a_loop_whose_count_or_condition_may_be_empty_runs_elsewhere(parts, expected):
    proto = model(COUNTED.format(**parts))
    assert verify(proto, proto, time_limit=4).outcome == expected


def test_a_split_with_more_outputs_than_it_says_is_not_loaded():
    proto = model("g (float[4] x) => (float[A] y, float[B] z) { y, z = Split <num_outputs = 1> (x) }")
    outcome = verify(proto, proto)
    assert "has more outputs than its num_outputs" in outcome.summary()
