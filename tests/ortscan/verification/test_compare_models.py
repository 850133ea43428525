"""Models that would crash onnxruntime are not run, or run in a subprocess with limits of time and memory."""

import numpy as np
import pytest

import ortscan
from ortscan.verification import compare_models, verify
from rewrites.base.errors import OptionError
from tests.support.text import model_from_text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("g (float[N, 4] x, float[4] s) => (float[N, 4] y) { y = LayerNormalization (x, s, \"\") }", "ends in an empty input name"),
        (
            """g (int64 n, float[2] x) => (float[K, 2] y) {
              t = Constant <value = bool {1}> ()
              "", y = Loop (n, t, x) <body = b (int64 i, bool c, float[2] s) => (bool go, float[2] m, float[2] o) {
                go = Identity(c) m = Add(s, s) o = Identity(s)
              }>
            }""",
            "has an output without a name",
        ),
    ],
)  # fmt: skip
def test_a_model_that_would_kill_the_process_is_not_run(text, message):
    proto = model_from_text(text, 18, check=False)
    outcome = verify(proto, proto)
    assert not outcome.ok
    assert f"the original would crash onnxruntime: {outcome.problems[0].split(': ')[1]}" in outcome.summary()
    assert message in outcome.summary()


PRODUCTS = {
    "of the inputs": "p = MatMul (x0, d) y0 = Tanh (p) h1 = Add (h0, y0)",
    "of the state": "p = MatMul (h0, d) h1 = Tanh (p) y0 = Mul (h1, x0)",
    "with a bias": "p = Gemm (x0, d) y0 = Tanh (p) h1 = Add (h0, y0)",
    "of what the state becomes": "r = Relu (h0) p = MatMul (r, d) h1 = Tanh (p) y0 = Mul (h1, x0)",
}


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
def test_an_original_that_the_optimiser_of_onnxruntime_refuses_runs_without_it(product: str) -> None:
    weights = "<int8[2,2] w = {1, 2, 3, 4}, float s = {0.5}, int8 z = {0}>"
    text = f"""g (float[1,2] h, float[T,1,2] x) => (float[1,2] hT, float[T,1,2] y) {weights} {{
        hT, y = Scan <num_scan_inputs = 1, body = b (float[1,2] h0, float[1,2] x0) => (float[1,2] h1, float[1,2] y0) {{
            d = DequantizeLinear (w, s, z) {product} }}> (h, x) }}"""
    original = model_from_text(text, 17, check=False)
    found = ortscan.verify(original, ortscan.optimize(original, verify=False), level="quick")
    assert found.outcome == "equal"
    assert "the original ran without onnxruntime's optimisation, which rejects it" in found.summary()
    wrong = model_from_text(
        text.replace("Tanh (p)", "Sigmoid (p)")
        .replace("int8[2,2] w", "float[2,2] d")
        .replace("{1, 2, 3, 4}", "{0.5, 1, 1.5, 2}")
        .replace("d = DequantizeLinear (w, s, z)", "")
        .replace(", float s = {0.5}, int8 z = {0}", ""),
        17,
        check=False,
    )
    assert ortscan.verify(original, wrong, level="quick").outcome == "different"


SUM = "g (float[T, B, 4] x) => (float[B, 4] y) { a = Constant <value_ints = [0]> () y = ReduceSum <keepdims = 0> (x, a) }"


SHAPED = """
g (float[T, B, 4] x) => (float[B, 4] y) {{
  a = Constant <value_ints = [0]> () s = ReduceSum <keepdims = 0> (x, a) n = Shape <start = {axis}, end = {end}> (x)
  w = Constant <value_ints = [{size}]> () e = Equal(n, w) f = Cast <to = 1> (e) y = Sub(s, f)
}}"""


def model(text, opset=18):
    return model_from_text(text, opset)


def test_a_quick_comparison_takes_few_small_cases_of_unlike_sizes():
    outcome = verify(model(SUM), model(SUM), level="quick")
    assert (outcome.outcome, outcome.level, outcome.limits_hit) == ("equal", "quick", ())
    assert len(outcome.cases) <= 8
    for name, more in (("T", 5), ("B", 4)):
        assert {case.dims[name] for case in outcome.cases} == {0, 1, 2, 3, more}
    assert outcome.cases[0].dims["T"] != outcome.cases[0].dims["B"]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_difference_at_one_small_size_is_found_quickly(axis, size):
    wrong = SHAPED.format(axis=axis, end=axis + 1, size=size)
    assert verify(model(SUM), model(wrong), level="quick").outcome == "different"


def test_a_quick_comparison_tries_the_first_trip_counts():
    loop = """g (int64 n, float[2] h) => (float[2] y) {
      y = Loop (n, , h) <body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] t) { c2 = Identity(c) t = Add(s, s) }>
    }"""
    cases = verify(model(loop), model(loop), level="quick", time_limit=60).cases
    assert {case.varied["n"] for case in cases} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": "fast"}, "level must be 'full' or 'quick', not 'fast'"),
        ({"level": None}, "level must be 'full' or 'quick', not None"),
        ({"time_limit": 0}, "time_limit must be a number of seconds above 0, not 0"),
        ({"time_limit": float("nan")}, "time_limit must be a number of seconds above 0"),
        ({"time_limit": True}, "time_limit must be a number of seconds above 0"),
        ({"memory_limit": 1.5}, "memory_limit must be a whole number of bytes above 0, not 1.5"),
        ({"memory_limit": "1G"}, "memory_limit must be a whole number of bytes above 0, not '1G'"),
    ],
)
def test_a_level_or_limit_that_is_none_is_refused(options, message):
    with pytest.raises(OptionError, match=message):
        verify(model(SUM), model(SUM), **options)


def test_a_result_far_slower_than_the_time_limit_leaves_the_comparison_open():
    slow = """
    g (float[4] x) => (float[4] y) { n = Constant <value_int = 100000000> () t = Constant <value = bool {1}> ()
      y = Loop (n, t, x) <body = b (int64 i, bool c, float[4] s) => (bool c2, float[4] r) { c2 = Identity(c) r = Tanh(s) }> }"""
    outcome = verify(model(slow), model(slow), time_limit=0.3)
    assert outcome.outcome == "inconclusive"
    assert outcome.limits_hit == ("the time limit of 0.3 s",)


def test_a_value_too_large_for_the_memory_limit_is_not_made():
    text = "g (float[4000000] x) => (float[4000000] y) { y = Relu(x) }"
    outcome = verify(model(text), model(text), memory_limit=1 << 20)
    assert outcome.outcome == "inconclusive"
    assert outcome.limits_hit == ("the memory limit of 1 MiB",)
    assert verify(model(text), model(text), inputs={"x": np.zeros(4_000_000, np.float32)}, memory_limit=1 << 20).ok


GUARDED = """
g (float[T, B, 3] x, float[1, 6, 3] w, float[1, 6, 2] r) => (float[1, B, 2] y) {{
  least = Constant <value_int = {least}> () size = Size(x) some = Greater(size, least)
  y = If (some) <then_branch = t () => (float[1, B, 2] a) {{ steps, a = GRU <hidden_size = 2> (x, w, r) }},
    else_branch = e () => (float[1, B, 2] z) {{
      n = Shape <start = 1, end = 2> (x) one = Constant <value_ints = [1]> () two = Constant <value_ints = [2]> ()
      s = Concat <axis = 0> (one, n, two) z = ConstantOfShape(s)
    }}>
}}"""


def test_sizes_of_zero_that_a_guard_keeps_from_a_node_are_tried_here(monkeypatch):
    monkeypatch.setattr(compare_models, "OwnProcessRunner", None)
    text = GUARDED.format(least=0)
    outcome = verify(model(text), model(text), level="quick")
    assert outcome.outcome == "equal"
    assert {case.dims["T"] for case in outcome.cases if case.status == "equal"} == {0, 1, 2, 3, 5}


def test_a_guard_that_lets_a_size_of_zero_in_is_a_difference_and_ends_no_process():
    outcome = verify(model(GUARDED.format(least=0)), model(GUARDED.format(least=-1)), level="quick")
    assert outcome.outcome == "different"
    assert "an If passes a sequence without steps or rows to a recurrent node" in outcome.summary()


def test_a_value_inside_that_is_larger_than_the_memory_limit_is_not_computed():
    text = """
    g (float[N] x) => (float[N] y) <int64[1] s = {10000000000}> {
      big = ConstantOfShape <value = float[1] {1}> (s) a = Constant <value_ints = [0]> () t = ReduceSum(big, a) y = Add(x, t)
    }"""
    outcome = verify(model(text), model(text))
    assert outcome.outcome == "inconclusive"
    assert "'big' would take 38146 MiB" in outcome.summary()
    assert outcome.limits_hit == ("the memory limit of 2048 MiB",)


def test_sizes_whose_values_inside_would_be_too_large_are_not_tried():
    text = "g (float[N, 1000] x) => (float[N] y) { t = Transpose(x) p = MatMul(x, t) a = Constant <value_ints = [1]> () y = ReduceSum <keepdims = 0> (p, a) }"
    outcome = verify(model(text), model(text), memory_limit=100_000)
    assert outcome.ok
    assert max(case.dims["N"] for case in outcome.cases) == 16
