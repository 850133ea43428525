"""Noise in the last digits of what a model computes, and results that are sensitive to it."""

import numpy as np
import pytest
from onnx.numpy_helper import from_array

import ortscan
from ortscan.verification import verify
from ortscan.verification.oracle.rounding_noise import noise_feeds, with_rounding_noise
from tests.support.layers import layers
from tests.support.text import model_from_text, ort_run

EXACT = np.array([0.0, 0.5, -2.0, np.inf, -np.inf, 100.0], np.float32)
CHAOS = """g (float[4] x) => ({kind} y) {{
  h = Constant <value = float[4] {{{start}}}> () n = Constant <value_int = 100> () t = Constant <value = bool {{1}}> ()
  r = Loop (n, t, h) <body = b (int64 i, bool p, float[4] s) => (bool p2, float[4] r) {{
    p2 = Identity(p) u = Constant <value_float = 1.0> () k = Constant <value_float = 3.75> () {step} }}> {last} }}"""
FORMS = "m = Mul(k, s) d = Sub(u, s) r = Mul(m, d)", "q = Mul(s, s) d = Sub(s, q) r = Mul(d, k)"


def noisy(text, **feed):
    model = model_from_text(text, 18)
    before = ort_run(model, feed)[0]
    after = with_rounding_noise(model)
    return before, [ort_run(after, {**feed, **noise})[0] for noise in noise_feeds(1.0)]


@pytest.mark.parametrize("kind", ["float", "double", "float16"])
def test_noise_moves_a_result_by_some_roundings_of_its_type(kind):
    x = np.random.default_rng(0).standard_normal(100).astype({"float": "f4", "double": "f8", "float16": "f2"}[kind])
    before, after = noisy(f"g ({kind}[N] x) => ({kind}[N] y) {{ y = Exp(x) }}", x=x)
    for values in after:
        assert values.dtype == before.dtype
        assert (values != before).any()
        assert np.abs(values - before).max() <= 3 * np.finfo(before.dtype).eps * np.abs(before).max()


def test_numbers_of_few_digits_stay_as_they_are():
    before, after = noisy("g (float[N] x) => (float[N] y) <float k = {2.0}> { m = Mul(x, k) y = Add(m, k) }", x=EXACT)
    assert all(np.array_equal(values, before) for values in after)


@pytest.mark.parametrize(
    "text",
    [
        "g (float[N] x) => (float[N] y) <float k = {0.1}> { z = Sub(x, x) y = Add(z, k) }",
        """g (float[N] x) => (float[N] y) <float k = {0.1}> { t = Constant <value = bool {1}> ()
          y = If (t) <then_branch = a () => (float[N] o) { z = Sub(x, x) c = Identity(k) o = Add(z, c) },
            else_branch = b () => (float[N] o2) { o2 = Identity(x) }> }""",
        """g (float[N] x) => (float[N] y) { n = Constant <value_int = 1> () y = Loop (n, , x) <
          body = b (int64 i, bool p, float[N] s) => (bool p2, float[N] o) <float k = {0.1}> {
          p2 = Identity(p) z = Sub(s, s) o = Add(z, k) }> }""",
    ],
    ids=["a weight", "in a branch", "in a body"],
)
def test_noise_reaches_weights_wherever_they_are(text):
    before, after = noisy(text, x=np.ones(3, np.float32))
    assert any((values != before).all() for values in after)


def test_there_is_no_noise_for_a_model_too_old_for_it():
    assert with_rounding_noise(model_from_text("g (float[N] x) => (float[N] y) { y = Exp(x) }", 7)) is None


SEQUENCE = "z = Add(r, x) y = SequenceConstruct(z)"


@pytest.mark.long
@pytest.mark.parametrize(("kind", "last"), [("float[4]", "y = Add(r, x)"), ("seq(float[4])", SEQUENCE)])
@pytest.mark.parametrize("start", ["0.3, 0.1, 0.7, 0.2", "0.5, 0.25, 0.75, 0.125"])
def test_chaos_from_a_constant_is_no_difference(kind, last, start):
    pair = [model_from_text(CHAOS.format(kind=kind, last=last, start=start, step=step), 18) for step in FORMS]
    outcome = verify(*pair, level="quick")
    assert outcome.outcome != "different", outcome.summary()
    assert "that are sensitive to rounding" in outcome.summary()


def test_an_output_that_is_nothing_but_chaos_leaves_the_comparison_open():
    text = CHAOS.replace("(float[4] x) => ({kind} y)", "(float[4] x) => (float[4] r)").replace("{last}", "")
    outcome = verify(*(model_from_text(text.format(start="0.3, 0.1, 0.7, 0.2", step=step), 18) for step in FORMS), level="quick")
    assert outcome.outcome == "inconclusive"
    assert "sensitive to rounding in every case" in outcome.summary()


HALVES = """h1, h2 = Split <axis = 1, num_outputs = 2> (x) w1, w2 = Split <axis = 0, num_outputs = 2> (w)
  p1 = MatMul(h1, w1) p2 = MatMul(h2, w2) m = Add(p1, p2)"""


@pytest.mark.parametrize(
    ("weights", "other", "expected"),
    [
        ("2.0, 1.0, 4.0, -0.5", "m0 = MatMul(x, w) e = Constant <value_float = 1e-6> () m = Sub(m0, e)", "different"),
        ("2.0, 1.0, 4.0, -0.5", HALVES, "equal"),
        ("0.1, 0.2, -0.3, 0.7", HALVES, "equal"),
    ],
    ids=["of exact sums, wrong", "of exact sums", "of rounded sums"],
)
def test_a_threshold_is_compared(weights, other, expected):
    text = f"g (float[N, 4] x) => (float[N, 1] y) <float[4, 1] w = {{{weights}}}> {{ @ y = Floor(m) }}"
    pair = [model_from_text(text.replace("@", each), 18) for each in ("m = MatMul(x, w)", other)]
    assert verify(*pair).outcome == expected


GROWS = """g (float[T,B,32] x, float[B,32] h) => (float[T,B,32] y) {
    l, y = Scan <num_scan_inputs = 1, body = b (float[B,32] s, float[B,32] e) => (float[B,32] s1, float[B,32] o) {
        a = MatMul(s, w) d = MatMul(e, w) c = Add(a, d) s1 = Relu(c) o = Identity(s1) }> (h, x) }"""


def test_what_overflows_inside_is_no_difference():
    before = model_from_text(GROWS.replace("h) =>", "h, float[32,32] w) =>"), 18)
    before.graph.initializer.append(from_array(np.random.default_rng(1).standard_normal((32, 32)).astype(np.float32), "w"))
    del before.graph.input[2]
    after = ortscan.optimize(before, target="onnx", verify=False)
    assert "RNN" in str(after.graph)
    outcome = verify(before, after)
    assert outcome.outcome == "equal", outcome.summary()
    assert "overflow" in outcome.summary()


POWERS = """g (float[2,2] s0) => (float[2,2] s) {{ n = Constant <value_int = 5> () s = Loop (n, , s0) <
  body = b (int64 i, bool c, float[2,2] h) => (bool c1, float[2,2] h1) {{ c1 = Identity(c) p = Mul(h, h) {} }}> }}"""


def test_whether_what_overflows_is_infinite_or_no_number_hangs_on_the_order_of_sums():
    before, after = (POWERS.format(last) for last in ("h1 = Identity(p)", "u = Add(p, p) h1 = Sub(u, p)"))
    outcome = verify(*(model_from_text(text, 18) for text in (before, after)))
    assert outcome.outcome == "equal", outcome.summary()
    assert "overflow" in outcome.summary()
    never = POWERS.format("u = Add(p, p) v = Sub(p, u) r = Sqrt(v) h1 = Add(r, p)")
    assert verify(model_from_text(before, 18), model_from_text(never, 18)).outcome == "different"


def test_what_is_infinite_for_other_reasons_is_compared():
    text = "g (float[N,4] x) => (float[N,4] y) {{ o = Constant <value = float {{1}}> () z = Constant <value = float {{0}}> () a = Abs(x) b = Max(a, {0}) y = Div(o, b) }}"
    outcome = verify(*(model_from_text(text.format(least), 18) for least in ("z", "o")))
    assert outcome.outcome == "different"


@pytest.mark.parametrize("kind", ["float", "float16", "double"])
@pytest.mark.parametrize("swap", [False, True])
def test_infinity_instead_of_no_number_is_a_difference(swap: bool, kind: str):
    nodes = "o = Sub (x, x) e = Exp (o) i = Div (e, o)"
    declared = f"g ({kind}[3] x) => ({kind}[3] y, {kind}[3] z) {{ {nodes} z = Neg (x) "
    before, after = (model_from_text(declared + last, 18) for last in ("y = Identity (i) }", "y = Mul (i, o) }"))
    outcome = verify(*((after, before) if swap else (before, after)))
    assert outcome.outcome == "different", outcome.summary()
    assert outcome.first_difference.output == "y"


BRANCHES = """g (float[N] x{also}) => (float[N] y) <float[1] k = {{1}}{flag}> {{ y = If (c)
  <then_branch = t () => (float[N] a) <float[1] {mine} = {{2}}> {{ a = {op}(x, {mine}) }}, else_branch = e () => (float[N] b) {{ b = Add(x, k) }}> }}"""


@pytest.mark.parametrize("level", ["quick", "full"])
@pytest.mark.parametrize("op", ["Mul", "Sub", "Div"])
@pytest.mark.parametrize("given", [(", bool c", ""), ("", ", bool c = {1}")], ids=["free", "fixed"])
def test_what_onnxruntime_computes_otherwise_by_a_defect_is_neither_the_same_nor_roundings(given, op, level):
    also, flag = given
    before, after = (
        model_from_text(BRANCHES.format(also=also, flag=flag, op=op, mine=mine), 17, check=False) for mine in ("k", "k2")
    )
    outcome = verify(before, after, level=level)
    assert outcome.outcome == "inconclusive"
    assert (
        "onnxruntime computes output 'y' of the original differently if nodes that change nothing are added to it"
        in outcome.summary()
    )
    other = model_from_text(BRANCHES.format(also=also, flag=flag, op=op, mine="k3").replace("= {2}", "= {3}"), 17, check=False)
    assert verify(before, other, level=level).outcome != "equal"
    assert verify(after, before, level=level).outcome == "different"


SPOILT = {
    "beside what overflows": ("e = Exp(x) y = Tanh(e)", "e = Exp(x) q = Mul(e, zero) t = Tanh(e) y = Add(t, q)"),
    "in the same row": ("y = Exp(x)", "e = Exp(x) q = Mul(e, zero) s = ReduceSum(q, one) y = Add(e, s)"),
    "in the same column": ("y = Exp(x)", "e = Exp(x) q = Mul(e, zero) s = ReduceSum(q, first) y = Add(e, s)"),
    "where others become infinite": ("y = Exp(x)", "e = Exp(x) n = Neg(x) i = Exp(n) d = Mul(e, i) y = Div(e, d)"),
}


@pytest.mark.parametrize(("before", "after"), SPOILT.values(), ids=SPOILT)
def test_what_is_finite_in_the_original_is_compared_however_large_the_inputs(before: str, after: str) -> None:
    constants = "zero = Constant <value_float = 0.0> () one = Constant <value_ints = [1]> () first = Constant <value_ints = [0]> ()"
    models = (model_from_text(f"g (float[6,5] x) => (float[6,5] y) {{ {constants} {nodes} }}", 18) for nodes in (before, after))
    assert verify(*models).outcome == "different"


@pytest.mark.parametrize(("gain", "hidden", "batch", "level"), [(4, 128, 2, "quick"), (8, 64, 4, "full")])
def test_a_result_as_near_to_float64_as_the_original_is_equal(gain, hidden, batch, level):
    before = layers(["LayerNorm-LSTM"], hidden, batch, steps=hidden)
    random = np.random.default_rng(0)
    for tensor in before.graph.initializer:
        weights = gain * random.standard_normal(list(tensor.dims)) / (hidden**0.5 if len(tensor.dims) > 1 else 1)
        tensor.CopyFrom(from_array(weights.astype(np.float32), tensor.name))
    after = ortscan.optimize(before, native=True, verify=False)
    outcome = verify(before, after, level=level)
    assert outcome.outcome == "equal", outcome.summary()


@pytest.mark.parametrize("reduced", ["ReduceMax", "ReduceMin"])
def test_what_onnxruntime_makes_of_no_number_in_a_maximum_is_no_difference(reduced):
    constants = "one = Constant <value_ints = [1]> () zero = Constant <value_ints = [0]> ()"
    turned = f"t = Transpose(x) r = {reduced}(t, zero) y = Transpose(r)"
    pair = [
        model_from_text(f"g (float[N, 4] x) => (float[N, 1] y) {{ {constants} {nodes} }}", 18)
        for nodes in (f"y = {reduced}(x, one)", turned)
    ]
    outcome = verify(*pair)
    assert outcome.outcome == "equal", outcome.summary()
