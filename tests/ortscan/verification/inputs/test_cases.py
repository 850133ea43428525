"""Generated inputs fit the operators that read them, and have values of all kinds."""

import ml_dtypes
import numpy as np
import onnx
import pytest

from ortscan.running.budget import Budget
from ortscan.running.specs import input_specs
from ortscan.verification import verify
from ortscan.verification.inputs.prepare import prepare
from tests.ortscan.verification.inputs.equal_cases import TABLE, model, ok, ran
from tests.support.text import model_from_text


def test_indices_stay_inside_what_they_index():
    cases = ok(TABLE)
    assert len(cases) == 26
    assert not any("integers" in case.varied for case in cases)


def test_indices_reach_all_of_what_they_index():
    other = TABLE.replace("8, 9}", "8, -9}")
    assert not verify(model(TABLE), model(other)).ok


def test_indices_are_found_through_casts_and_shifts_and_into_bodies():
    text = """
    g (float[T] ids, float[2] s) => (float[2] last, float[T, 2] y)
    <float[4, 2] table = {0, 1, 2, 3, 4, 5, 6, 7}, int64 one = {0}> {
      i = Cast <to = 7> (ids)
      j = Add(i, one)
      last, y = Scan <num_scan_inputs = 1, body = b (float[2] h, int64 k) => (float[2] n, float[2] row) {
        row = Gather(table, k)
        n = Add(h, row)
      }> (s, j)
    }
    """
    assert not any("integers" in case.varied for case in ok(text) if "values" not in case.varied)


def test_integers_nothing_is_known_of_are_drawn_again_while_the_original_refuses_them():
    text = """
    g (int64[N] ids, float[M] x) => (float[N] y) {
      k = Constant <value_ints = [2]> ()
      m = Mod(ids, k)
      z = Gather(x, m)
      p = Sqrt(x)
      a = Neg(ids)
      q = Gather(x, a)
      y = Add(z, q)
    }
    """
    assert ok(text)


def test_a_divisor_of_integers_is_never_zero():
    cases = ok("g (int64[N] a, int64[N] b) => (int64[N] y) { y = Div(a, b) }")
    assert not any("integers" in case.varied for case in cases)


def test_plain_integers_are_negative_too():
    one = model("g (int64[N] a) => (int64[N] y) { y = Abs(a) }")
    two = model("g (int64[N] a) => (int64[N] y) { y = Identity(a) }")
    assert not verify(one, two).ok


def test_unsigned_booleans_and_other_types():
    for kind in ("uint8", "int8", "uint64", "bool", "double", "float16", "string", "bfloat16"):
        more = 4 if "float" in kind or kind == "double" else 6 if "int" in kind else 0
        assert len(ok(f"g ({kind}[N] x) => ({kind}[N] y) {{ y = Identity(x) }}")) == 18 + more


@pytest.mark.parametrize(("kind", "number"), [("float8e4m3fn", 17), ("float8e5m2", 19)])
def test_float8_values_travel(kind, number):
    assert ok(f"g ({kind}[N] x) => ({kind}[N] y) {{ f = Cast <to = 1> (x) y = Cast <to = {number}> (f) }}", 21)


def test_a_difference_in_bfloat16_is_seen():
    one = model("g (bfloat16[N] x) => (bfloat16[N] y) { f = Cast <to = 1> (x) a = Abs(f) y = Cast <to = 16> (a) }")
    two = model("g (bfloat16[N] x) => (bfloat16[N] y) { y = Identity(x) }")
    outcome = verify(one, two)
    assert isinstance(outcome.first_difference.before, ml_dtypes.bfloat16)


def test_different_strings_are_a_difference():
    one = model('g (string[N] x) => (string[N] y) { y = StringNormalizer <case_change_action = "UPPER", locale = "C"> (x) }')
    two = model('g (string[N] x) => (string[N] y) { y = StringNormalizer <case_change_action = "LOWER", locale = "C"> (x) }')
    outcome = verify(one, two)
    assert outcome.first_difference.before == outcome.first_difference.after.upper()


BATCHED = """
g (float[B, 2] h, float[B, T, 2] x, int64[B] lens) => (float[B, 2] last, float[B, T, 2] y) {
  last, y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] xt) => (float[2] n, float[2] yt) {
    n = Add(s, xt)
    yt = Mul(n, xt)
  }> (lens, h, x)
}
"""


def test_sequence_lengths_are_between_one_and_the_length_and_not_all_equal():
    cases = ok(BATCHED, 8)
    assert {case.dims["T"] for case in cases} >= {1, 2, 3, 7, 61}
    full = BATCHED.replace("(lens, h, x)", '("", h, x)')
    assert not verify(model(BATCHED, 8), model(full, 8)).ok


def test_sizes_of_zero_never_reach_what_they_would_kill():
    outcome = verify(model(BATCHED, 8), model(BATCHED, 8))
    assert not any(0 in case.dims.values() for case in outcome.cases)
    assert (
        "sizes of zero were not tried, because onnxruntime may crash or return uninitialised values at Scan of opset 8"
        in outcome.summary()
    )


def test_given_sizes_of_zero_are_refused_where_they_kill():
    given = {"h": np.zeros((0, 2), np.float32), "x": np.zeros((0, 3, 2), np.float32), "lens": np.zeros(0, np.int64)}
    outcome = verify(model(BATCHED, 8), model(BATCHED, 8), inputs=given)
    assert not outcome.ok
    assert "onnxruntime may crash or return uninitialised values at " in outcome.summary()


LSTM = """
g (float[T, B, 2] x, int32[B] lens) => (float[T, 1, B, 3] y) <float[1, 12, 2] w, float[1, 12, 3] r> {
  y = LSTM <hidden_size = 3> (x, w, r, "", lens)
}
"""


def lstm():
    proto = model_from_text(LSTM.replace("<float[1, 12, 2] w, float[1, 12, 3] r>", ""), 18, check=False)
    numbers = np.random.default_rng(0)
    for name, shape in (("w", (1, 12, 2)), ("r", (1, 12, 3))):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(numbers.random(shape, np.float32), name))
    return proto


def test_lengths_of_recurrent_operators_fit():
    outcome = verify(lstm(), lstm())
    assert outcome.ok
    assert not any(case.status == "skipped" or case.varied.get("integers") for case in outcome.cases)


LOOP = """
g (int64 n, float[2] x) => (float[2] last, float[K, 2] y) {
  t = Constant <value = bool {1}> ()
  last, y = Loop (n, t, x) <body = b (int64 i, bool c, float[2] s) => (bool go, float[2] m, float[2] o) {
    go = Identity(c)
    m = Add(s, s)
    o = Identity(s)
  }>
}
"""


def test_trip_counts_vary_and_include_none():
    cases = ok(LOOP)
    assert {case.varied["n"] for case in cases} == {-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 17, 131}
    assert "n in -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 17, 131" in verify(model(LOOP), model(LOOP)).summary()


def test_a_wrong_state_after_no_trip_is_found():
    once = """
    g (int64 n, float[2] x) => (float[2] last, float[K, 2] y) {
      t = Constant <value = bool {1}> () one = Constant <value = int64 {1}> () zero = Constant <value_float = 0.0> ()
      none = Cast <to = 9> (n)
      start = Where(none, x, zero)
      last, y = Loop (n, t, start) <body = b (int64 i, bool c, float[2] s) => (bool go, float[2] m, float[2] o) {
        go = Identity(c)
        m = Add(s, s)
        o = Identity(s)
      }>
    }
    """
    outcome = verify(model(LOOP), model(once))
    assert {case.varied["n"] for case in outcome.cases if case.status == "different"} == {0}


def test_symbols_are_shared_and_anonymous_sizes_agree_where_they_must():
    text = "g (float[N, ?] x, float[?, N] y) => (float[N, N] z) { z = MatMul(x, y) }"
    cases = ok(text.replace("[N, ?]", "[N, A]").replace("[?, N]", "[C, N]"))
    assert len(cases) >= 10
    anonymous = model("g (float[N, 1] x, float[1, N] y) => (float[N, N] z) { z = MatMul(x, y) }")
    for value, axis in ((0, 1), (1, 0)):
        anonymous.graph.input[value].type.tensor_type.shape.dim[axis].Clear()
    outcome = verify(anonymous, anonymous)
    assert outcome.ok
    assert all(case.dims["x[1]"] == case.dims["y[0]"] for case in ran(outcome))
    assert {case.dims["x[1]"] for case in ran(outcome)} >= {1, 2, 3, 7}


def test_sizes_weights_decide_are_read_off_them():
    text = """
    g (float[N, I] x, float[N, H] h) => (float[N, 3] y) <float[2, 3] w = {1, 2, 3, 4, 5, 6}> {
      p = MatMul(x, w) y = Add(p, h)
    }"""
    cases = ok(text)
    assert {case.dims["I"] for case in cases} == {2}
    assert {case.dims["H"] for case in cases} == {1, 3}


def test_sizes_that_may_broadcast_are_tried_equal_and_apart():
    text = "g (float[N] x, float[M] y) => (float[K] z) { z = Add(x, y) }"
    cases = ok(text)
    pairs = {(case.dims["N"], case.dims["M"]) for case in cases}
    assert {(3, 3), (33, 33), (1, 3), (3, 1)} <= pairs


def test_sizes_computed_from_others_follow_them():
    text = "g (float[T] x, float[T2] y) => (float[T2] z) { d = Concat <axis = 0> (x, x) z = Add(d, y) }"
    doubled = model(text)
    for value in (doubled.graph.input[1], doubled.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_param = "2*T"
    outcome = verify(doubled, doubled)
    assert outcome.ok
    assert all(case.dims["2*T"] == 2 * case.dims["T"] for case in outcome.cases)


def test_a_name_that_only_looks_like_arithmetic_is_a_name():
    odd = model("g (float[A, B] x) => (float[A, B] y) { y = Relu(x) }")
    odd.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch-size"
    outcome = verify(odd, odd)
    assert {case.dims["batch-size"] for case in ran(outcome)} >= {1, 2, 3, 7, 33}


def test_sizes_only_equal_ones_satisfy_are_found():
    text = "g (float[A] x, float[B] y) => (float[A] z) { s = Shape(x) r = Reshape(y, s) z = Add(x, r) }"
    outcome = verify(model(text), model(text))
    assert outcome.ok
    assert any(case.dims["A"] == case.dims["B"] > 1 for case in ran(outcome))


def test_a_size_the_original_only_takes_as_one_is_said_to_be_untried():
    text = "g (float[A] x) => (float[A] z) { s = Constant <value_ints = [1]> () z = Reshape(x, s) }"
    outcome = verify(model(text), model(text))
    assert outcome.ok
    assert "the original did not run with 'A' above 1" in outcome.summary()


def test_inputs_beyond_the_memory_limit_are_left_out():
    text = "g (float[N, 100] x) => (float[N, 100] y) { y = Relu(x) }"
    outcome = verify(model(text), model(text), memory_limit=4000)
    assert outcome.ok
    assert {case.dims["N"] for case in outcome.cases} == {0, 1, 2, 3, 4, 5, 6, 7, 8}
    assert outcome.limits_hit
    none = verify(model(text.replace("100", "2000")), model(text.replace("100", "2000")), memory_limit=4000)
    assert (none.outcome, none.problems) == ("inconclusive", ("there was no case to run within the memory limit of 4000 bytes",))


def test_large_inputs_are_fed_few_times():
    text = "g (float[16, 65536] x) => (float[16] y) <int64[1] a = {1}> { y = ReduceSum <keepdims = 0> (x, a) }"
    outcome = verify(model(text), model(text), memory_limit=10 << 20)
    assert outcome.ok
    assert len(outcome.cases) == 2


def test_sequences_and_optionals_are_made_up():
    first = "n = SequenceLength(x) z = Constant <value_int = 0> () y = SequenceAt(x, z)"
    assert ok(f"g (seq(float[N]) x) => (int64 n, float[N] y) {{ {first} }}")
    assert ok("g (optional(float[N]) x) => (float[N] y) { y = OptionalGetElement(x) }")


def test_a_rank_that_would_kill_onnxruntime_is_not_run():
    scan = model_from_text(
        """
        g (float[1] h, float[T, 2] x) => (float[1] s, float[T, 2] y) {
          s, y = Scan <num_scan_inputs = 1, body = b (float[N] h0, float[M] xt) => (float[N] h1, float[M] o) {
            h1 = Identity(h0)
            o = Relu(xt)
          }> (h, x)
        }""",
        18,
    )
    for value in (*scan.graph.input, *scan.graph.output):
        value.type.tensor_type.ClearField("shape")
    good = {"h": np.ones(1, np.float32), "x": np.ones((4, 2), np.float32)}
    assert verify(scan, scan, inputs=good).ok
    outcome = verify(scan, scan, inputs={**good, "h": np.ones((1, 1, 1), np.float32)})
    assert not outcome.ok
    assert "gets rank 3, but its body input 'h0' has rank 1" in outcome.summary()


def test_a_model_without_inputs_is_run_once():
    text = "g () => (float[2] y) { y = Constant <value_floats = [1.0, 2.0]> () }"
    assert len(ok(text)) == 1
    assert not verify(model(text), model(text.replace("2.0", "3.0"))).ok


def test_a_model_with_functions_is_read_inside_them():
    text = """
    <ir_version: 10, opset_import: ["": 18, "own": 1]>
    g (int64[N] ids) => (float[N, 2] y) <float[5, 2] table = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}> { y = own.look(table, ids) }
    <domain: "own", opset_import: ["": 18]>
    look (t, i) => (o) { o = Gather(t, i) }
    """
    proto = model_from_text(text)
    outcome = verify(proto, proto)
    assert outcome.ok
    assert not any("integers" in case.varied for case in outcome.cases)


@pytest.mark.long
def test_maps_are_compared():
    text = """
    <ir_version: 8, opset_import: ["": 15, "ai.onnx.ml": 1]>
    g (float[N, 3] x) => (seq(map(int64, float)) y) { y = ai.onnx.ml.ZipMap <classlabels_int64s = [10, 20, 30]> (x) }
    """
    one, two = (model_from_text(text.replace("30]", last), check=False) for last in ("30]", "31]"))
    assert verify(one, one).ok
    assert "has other keys" in verify(one, two).first_difference.reason


def fed(text, level="full", opset=18):
    """Return the values of each input of a model over all cases."""
    proto = model(text, opset)
    inputs = prepare((proto, proto), [set(), set()], input_specs(proto.graph), {}, {}, 0, level, Budget(60, 1 << 30)).inputs
    return [
        inputs.feed(planned.point, planned.attempts[0]) for planned in (*inputs.planned_cases(None), *inputs.unusual_cases(None))
    ]


def test_floats_are_of_all_kinds_wherever_they_go():
    values = np.concatenate([feed["b"].ravel() for feed in fed("g (float[N] a, float[N] b) => (float[N] y) { y = Div(a, b) }")])
    assert np.isnan(values).any()
    assert np.isinf(values).any()
    finite = values[np.isfinite(values)]
    assert (finite < 0).any()
    assert (finite % 1 != 0).mean() > 0.5


def test_floats_that_decide_sizes_stay_small():
    text = "g (float s, float e, float d) => (float[N] y) { y = Range(s, e, d) }"
    for feed in fed(text):
        assert all(abs(value) <= 9 for value in feed.values())
        assert feed["d"] != 0


STRICT = """g (float[N] x, int64 a, int64 b) => (float[N] y) {{
  z = Constant <value_int = 0> () e = Equal(a, z) far = Constant <value_int = -5> () j = Where(e, z, far) u = Unsqueeze(x, j)
  c = CumSum(x, a) d = CumSum(x, {}) p = Add(c, d) s = Size(u) f = Cast <to = 1> (s) y = Add(p, f)
}}"""


def test_a_case_that_the_original_refuses_leaves_the_others():
    outcome = verify(model(STRICT.format("b")), model(STRICT.format("b")))
    assert outcome.ok
    assert "unusual values of 'a', such as negative ones" in outcome.not_tried
    cases = {case.varied["values"]: case.status for case in outcome.cases if "values" in case.varied}
    assert (cases["other integers"], cases["other integers for 'a'"], cases["other integers for 'b'"]) == (
        "skipped",
        "skipped",
        "equal",
    )


def test_the_least_integer_is_not_divided():
    for feed in fed(
        "g (int64[N] a, int64[N] c) => (int64[N] y) { m = Constant <value_int = -1> () b = Add(a, m) q = Div(b, m) y = Add(q, c) }"
    ):
        assert not (feed["a"] == -(2**63)).any()
    assert any((feed["c"] == -(2**63)).any() for feed in fed("g (int64[N] c) => (int64[N] y) { y = Abs(c) }"))


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("g (int64[N] i, float[9] x) => (float[N] y) { y = Gather(x, i) }", 2),
        ("g (int64[N] a) => (int64[N] y) { y = Abs(a) }", 1),
        ("g (float[N] a) => (float[N] y) { y = Abs(a) }", 0),
        ("g (seq(float[N]) s) => (int64 y) { y = SequenceLength(s) }", 1),
    ],
)
def test_a_quick_comparison_has_few_cases_of_unusual_values(text, kinds):
    cases = verify(model(text), model(text), level="quick", time_limit=60).cases
    assert sum(case.varied.get("values") not in (None, "mixed") for case in cases) == kinds


@pytest.mark.parametrize("number", ["inf", "nan", "3e38"])
def test_weights_that_a_caller_may_replace_need_not_be_finite(number):
    given = model("g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }")
    given.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.array([1, number], np.float32), "w"))
    outcome = verify(given, given)
    assert outcome.ok
    assert {case.varied.get("defaults") for case in ran(outcome)} >= {"replaced", "far"}
