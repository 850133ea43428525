"""Quick and full comparisons, their limits, and loops that are compared by themselves."""

import numpy as np
import onnx
import pytest

from ortscan.verification import compare_loops, compare_models, verify
from rewrites.base.errors import OptionError
from tests.support.text import model_from_text

SUM = "g (float[T, B, 4] x) => (float[B, 4] y) { a = Constant <value_ints = [0]> () y = ReduceSum <keepdims = 0> (x, a) }"
SHAPED = """
g (float[T, B, 4] x) => (float[B, 4] y) {{
  a = Constant <value_ints = [0]> () s = ReduceSum <keepdims = 0> (x, a) n = Shape <start = {axis}, end = {end}> (x)
  w = Constant <value_ints = [{size}]> () e = Equal(n, w) f = Cast <to = 1> (e) y = Sub(s, f)
}}"""
CHAIN = """
g (float[T, B, 3] x, float[B, 3] h) => (float[T, B, 3] z)
<float[3, 3] v = {{1, 2, 3, 4, 5, 6, 7, 8, 10}}, float[3, 3] r = {{0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, 0.8, -0.9}}> {{
  p = MatMul(x, v)
  last, y = Scan <num_scan_inputs = 1, body = b (float[B, 3] s, float[B, 3] xt) => (float[B, 3] n, float[B, 3] yt) {{
    q = MatMul(s, {first}) a = Add(q, xt) n = Tanh(a) yt = Identity(n)
  }}> (h, p)
  q2 = MatMul(y, v)
  last2, z = Scan <num_scan_inputs = 1, body = c (float[B, 3] s2, float[B, 3] xt2) => (float[B, 3] n2, float[B, 3] yt2) {{
    q3 = MatMul(s2, {second}) a2 = Add(q3, xt2) n2 = Tanh(a2) {out}
  }}> (h, q2)
}}"""


def model(text, opset=18):
    return model_from_text(text, opset)


def chain(first="r", second="r", out="yt2 = Identity(n2)"):
    return model(CHAIN.format(first=first, second=second, out=out))


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
    ("options", "said"),
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
def test_a_level_or_limit_that_is_none_is_refused(options, said):
    with pytest.raises(OptionError, match=said):
        verify(model(SUM), model(SUM), **options)


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(compare_loops, "LARGE_NODES", 0)


@pytest.mark.usefixtures("everything_is_large")
def test_the_loops_of_a_large_model_are_compared_one_by_one():
    outcome = verify(chain(), chain(out="m = Tanh(a2) yt2 = Identity(m)"), level="quick")
    assert outcome.outcome == "equal"
    assert [output.name for output in outcome.outputs] == ["last2", "z"]
    assert "compared loop by loop, each on inputs of its own: 1 of 2; 1 more are as they were" in outcome.summary()
    assert "not tried: the model around its loops" in outcome.summary()


@pytest.mark.usefixtures("everything_is_large")
def test_a_fault_in_one_loop_of_a_large_model_is_found_and_named():
    outcome = verify(chain(), chain(out="yt2 = Sin(a2)"), level="quick")
    assert outcome.outcome == "different"
    assert outcome.first_difference.output == "z"
    assert "Scan 'last2' differs by itself" in outcome.notes


@pytest.mark.usefixtures("everything_is_large")
def test_a_mask_is_no_value_to_cut_at():
    text = """
    g (float[T, 3] x, float[3] h) => (float[3] last) <float zero = {{0}}> {{
      m = Greater(x, zero) k = Cast <to = 1> (m)
      last = Scan <num_scan_inputs = 2, body = b (float[3] s, float[3] xt, float[3] kt) => (float[3] n) {{
        a = Add(s, xt) b1 = Mul(a, kt) {}
      }}> (h, x, k)
    }}"""
    before = model(text.format("n = Identity(b1)"))
    assert verify(before, model(text.format("n = Mul(b1, kt)")), level="quick").outcome == "equal"


@pytest.mark.usefixtures("everything_is_large")
def test_a_state_that_the_result_knows_is_no_value_to_cut_at():
    text = """
    g (float[T, 3] x) => (float[3] last) {{
      h0 = ConstantOfShape <value = float[1] {{0}}> (w) {}
      last = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] xt) => (float[3] n) {{ n = {} }}> (h0, x)
    }}"""
    text = text.replace("=> (float[3] last) {{", "=> (float[3] last) <int64[1] w = {{3}}> {{")
    before = model(text.format("", "Add(s, xt)"))
    after = model(text.format("z = Add(h0, h0)", "Add(s, xt)").replace("(h0, x)", "(z, x)"))
    assert verify(before, after, level="quick").outcome == "equal"


@pytest.mark.usefixtures("everything_is_large")
def test_a_large_model_whose_loops_cannot_be_cut_is_compared_as_a_whole_if_there_is_time(monkeypatch):
    text = """
    g (float[T, 3] x, float[3] h) => (float[3] z) {{
      {0} = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] xt) => (float[3] n) {{ n = Add(s, xt) }}> (h, x)
      k = Greater({0}, h) z = Where(k, h, h)
    }}"""
    far = [("e", "Exp(u)"), *[(f"e{i}", f"Cos({'e' if i == 0 else f'e{i - 1}'})") for i in range(50)]]
    steps = " ".join(f"{name} = {value}" for name, value in far)
    before = model(text.format("u").replace("k = Greater(u, h)", f"{steps} k = Greater(e49, h)"))
    after = onnx.ModelProto()
    after.CopyFrom(before)
    for node in after.graph.node[:-2]:
        node.input[:] = [f"{name}_" if name.startswith(("e", "u")) else name for name in node.input]
        node.output[:] = [f"{name}_" for name in node.output]
    after.graph.node[-2].input[0] = "e49_"
    assert verify(before, after, level="quick").outcome == "equal"
    monkeypatch.setattr(compare_loops, "_SECONDS_A_NODE", 1000)
    outcome = verify(before, after, level="quick")
    assert (outcome.outcome, outcome.problems) == ("inconclusive", ("no loop could be compared by itself",))
    assert "not tried: Scan 'u' (nothing that it gives has a name in both models)" in outcome.summary()


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
    assert "an If lets a sequence without steps or rows into a recurrent node" in outcome.summary()


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
