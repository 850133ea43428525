"""An original that onnxruntime computes wrongly is repaired."""

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.verification import verify
from ortscan.verification.oracle.sound import sound_oracle, unsound_loops
from tests.support.loop_oracle import run_model
from tests.support.text import assert_same_numbers, model_from_text, ort_run

TWICE = """
g (float[2] h, float[T, 2] x) => (float[2] last, float[T, 2] y) {
  last, y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] xt) => (float[2] n, float[2] n) {
    n = Add(s, xt)
  }> (h, x)
}
"""


PASSED = """
g (float[2] h, float[T, 2] x) => (float[2] last, float[T, 2] y, float[T, 2] z) {
  last, y, z = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] xt) => (float[2] n, float[2] s, float[2] xt) {
    n = Add(s, xt)
  }> (h, x)
}
"""


UNCHANGED = """
g (float[2] h, float[T, 2] x) => (float[2] last, float[T, 2] y) {
  last, y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] xt) => (float[2] s, float[2] yt) {
    yt = Add(s, xt)
  }> (h, x)
}
"""


NESTED = """
g (float[2] h, float[U, T, 2] x) => (float[2] last, float[U, T, 2] y) {
  last, y = Scan <num_scan_inputs = 1, body = o (float[2] a, float[T, 2] xu) => (float[2] b, float[T, 2] yu) {
    b, yu = Scan <num_scan_inputs = 1, body = i (float[2] s, float[2] xt) => (float[2] n, float[2] n) {
      n = Add(s, xt)
    }> (a, xu)
  }> (h, x)
}
"""


BATCHED = """
g (float[B, 2] h, float[B, T, 2] x) => (float[B, 2] last, float[B, T, 2] y) {
  last, y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] xt) => (float[2] n, float[2] n) {
    n = Add(s, xt)
  }> ("", h, x)
}
"""


SOUND = TWICE.replace("float[2] n, float[2] n)", "float[2] n, float[2] m)").replace(
    "n = Add(s, xt)", "n = Add(s, xt) m = Identity(n)"
)


def feeds(proto):
    numbers = np.random.default_rng(0)
    sizes = {"T": 3, "U": 2, "B": 2}
    return {
        value.name: numbers.random([d.dim_value or sizes[d.dim_param] for d in value.type.tensor_type.shape.dim], np.float32)
        for value in proto.graph.input
    }


@pytest.mark.parametrize(("text", "opset"), [(TWICE, 18), (PASSED, 18), (UNCHANGED, 9), (NESTED, 18), (BATCHED, 8)])
def test_an_unsound_scan_is_repaired_to_what_it_means(text, opset):
    proto = model_from_text(text, opset)
    kept = proto.SerializeToString()
    repaired = sound_oracle(proto)
    assert unsound_loops(proto)
    assert not unsound_loops(repaired)
    onnx.checker.check_model(repaired, full_check=True)
    for expected, actual in zip(run_model(proto, feeds(proto)), ort_run(repaired, feeds(proto)), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)
    assert proto.SerializeToString() == kept


def test_a_sound_model_is_left_alone():
    proto = model_from_text(SOUND, 18)
    assert sound_oracle(proto) is proto


RETURNED = {
    "stacked": """g (int64 n, float[2] h) => (float[2] last, int64[T] y) {
      last, y = Loop (n, , h) <body = b (int64 i, bool c, float[2] s) => (bool c1, float[2] s1, int64 i) {
        c1 = Identity (c) s1 = Add (s, s) }> }""",
    "carried": """g (int64 n, int64 h) => (int64 last, int64[T] y) {
      last, y = Loop (n, , h) <body = b (int64 i, bool c, int64 s) => (bool c1, int64 i, int64 s1) {
        c1 = Identity (c) s1 = Add (s, i) }> }""",
    "twice": """g (int64 n, int64 h) => (int64 last, int64[T] y, int64[T] z) {
      last, y, z = Loop (n, , h) <body = b (int64 i, bool c, int64 s) => (bool c, int64 i, int64 i, int64 s) { }> }""",
    "inside a Scan": """g (int64 n, float[2] h, float[3] x) => (float[2] last, int64[3, K] y) {
      last, y = Scan <num_scan_inputs = 1, body = o (float[2] r, float e) => (float[2] r1, int64[K] k) {
        r1, k = Loop (n, , r) <body = b (int64 i, bool c, float[2] s) => (bool c1, float[2] s1, int64 i) {
          c1 = Identity (c) s1 = Mul (s, e) }> }> (h, x) }""",
}


@pytest.mark.long
@pytest.mark.parametrize("way", RETURNED)
def test_a_loop_that_returns_its_step_number_is_repaired_to_what_it_means(way):
    proto = model_from_text(RETURNED[way], 18, check=False)
    h = np.ones(2, np.float32) if "float[2] h" in RETURNED[way] else np.array(7)
    given = {"n": np.array(4), "h": h} | ({"x": np.ones(3, np.float32)} if "x)" in RETURNED[way] else {})
    assert unsound_loops(proto)
    repaired = sound_oracle(proto)
    assert not unsound_loops(repaired)
    for expected, actual in zip(run_model(proto, given), ort_run(repaired, given), strict=True):
        np.testing.assert_array_equal(actual, expected)
    for after in (ortscan.optimize(proto), ortscan.migrate(proto, 13), ortscan.migrate(proto, 21)):
        assert not unsound_loops(after)
        assert_same_numbers(ort_run(after, given), ort_run(repaired, given))
    outcome = verify(proto, repaired)
    assert outcome.ok, outcome.summary()
    assert any("ran with Identity nodes" in note for note in outcome.notes)
    assert not verify(repaired, proto).ok


def test_what_else_a_loop_returns_needs_no_repair():
    proto = model_from_text(
        """
        g (int64 n, float[2] x) => (float[2] last, float[K, 2] y) {
          t = Constant <value = bool {1}> ()
          last, y = Loop (n, t, x) <body = b (int64 i, bool c, float[2] s) => (bool c, float[2] s, float[2] s) { }>
        }""",
        18,
        check=False,
    )
    assert sound_oracle(proto) is proto


def test_names_the_repair_would_take_are_avoided():
    proto = model_from_text(
        TWICE.replace("=> (float[2] last, float[T, 2] y) {", "=> (float[2] last, float[T, 2] y) { n_own = Relu(h)"), 18
    )
    repaired = sound_oracle(proto)
    body = next(attribute.g for attribute in repaired.graph.node[1].attribute if attribute.name == "body")
    assert [output.name for output in body.output] == ["n", "n_own_"]


def test_a_scan_inside_a_function_is_repaired():
    proto = model_from_text(
        """
        <ir_version: 10, opset_import: ["": 18, "own": 1]>
        g (float[2] h, float[T, 2] x) => (float[2] last, float[T, 2] y) { last, y = own.f(h, x) }
        <domain: "own", opset_import: ["": 18]>
        f (h, x) => (last, y) {
          last, y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] xt) => (float[2] n, float[2] n) {
            n = Add(s, xt)
          }> (h, x)
        }"""
    )
    assert unsound_loops(proto)
    outcome = verify(proto, model_from_text(SOUND, 18))
    assert outcome.ok, outcome.summary()


@pytest.mark.parametrize("text", [TWICE, PASSED])
def test_the_repaired_original_is_the_oracle(text):
    separate = {
        TWICE: SOUND,
        PASSED: text.replace(
            "=> (float[2] n, float[2] s, float[2] xt) {",
            "=> (float[2] n, float[2] s1, float[2] x1) { s1 = Identity(s) x1 = Identity(xt)",
        ),
    }[text]
    outcome = verify(model_from_text(text, 18), model_from_text(separate, 18))
    assert outcome.ok
    assert "the original ran with Identity nodes" in outcome.summary()
    wrong = separate.replace("n = Add(s, xt)", "n = Sub(s, xt)")
    assert not verify(model_from_text(text, 18), model_from_text(wrong, 18)).ok


def test_the_repaired_original_keeps_its_external_data(tmp_path):
    text = TWICE.replace("(float[2] h, float[T, 2] x)", "(float[T, 2] x)")
    one, two = (
        model_from_text(form, 18, check=False) for form in (text, SOUND.replace("(float[2] h, float[T, 2] x)", "(float[T, 2] x)"))
    )
    for proto in (one, two):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([3, 4], np.float32), "h"))
    onnx.save(one, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    assert verify(tmp_path / "m.onnx", two).ok


def test_a_result_onnxruntime_computes_wrongly_is_not_ok():
    outcome = verify(model_from_text(SOUND, 18), model_from_text(TWICE, 18))
    assert not outcome.ok
    assert "the result is computed wrongly by onnxruntime: Scan 'last' returns 'n'" in outcome.summary()


def test_sizes_of_empty_outputs_of_a_loop_without_trips_do_not_count():
    loop = """g (int64 n, float[2] x) => (float y) {
      t = Constant <value = bool {1}> ()
      last, y = Loop (n, t, x) <body = b (int64 i, bool c, float[2] s) => (bool go, float[2] m, float o) {
        go = Identity(c) m = Add(s, s) o = Relu(s)
      }>
    }"""
    one, two = (model_from_text(loop, 18, check=False) for _ in range(2))
    one.graph.output[0].type.tensor_type.ClearField("shape")
    two.graph.output[0].type.tensor_type.ClearField("shape")
    for proto, shape in ((one, None), (two, [2])):
        declared = proto.graph.node[1].attribute[0].g.output[2].type.tensor_type
        declared.ClearField("shape")
        if shape:
            declared.shape.dim.add().dim_value = 2
    outcome = verify(one, two)
    assert outcome.ok, outcome.summary()
