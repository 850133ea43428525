"""Large models are compared loop by loop."""

import pytest

import ortscan
from ortscan.verification import compare_loops, verify
from tests.support.text import model_from_text

LOOP = """
g (float[{t}, {n}] x, float[{n}] h) => (float[{n}] last, float[{t}, {n}] y) <int64 zero = {{0}}, bool yes = {{1}}> {{
  m = Mul(x, x) p = Neg(m) s = Shape(p) n = Gather(s, zero)
  last, y = Loop <body = b (int64 i, bool c, float[{n}] s0) => (bool c1, float[{n}] s1, float[{n}] y0) {{
    c1 = Identity(c) xi = Gather(p, i) t = Tanh(xi) a = Mul(s0, t) s1 = Sub(a, t) y0 = {out}
  }}> (n, yes, h)
}}"""


SCAN_8 = """
g (float[B, T, 4] x, float[B, 4] h) => (float[B, 4] last, float[B, T, 4] y) {
  last, y = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] xt) => (float[4] n, float[4] o) {
    t = Tanh(xt) a = Mul(s, t) n = Sub(a, t) o = Add(n, t)
  }> (, h, x)
}"""


UNKNOWN = """
g (float[T, 4] x, float[4] h, int64[1] k) => (float[4] last, float[7, 7] never)
<int64[1] zero = {{0}}, int64[2] two = {{2, 4}}, int64[2] seven = {{7, 7}}> {{
  p = Slice(x, zero, k) {} never = Reshape(x, seven)
  last = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] xt) => (float[4] n) {{ n = Add(s, xt) }}> (h, r)
}}"""


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch):
    monkeypatch.setattr(compare_loops, "LARGE_NODES", 0)


def loop(t="T", n=4, out="Add(s1, t)"):
    return model_from_text(LOOP.format(t=t, n=n, out=out), 17, check=False)


@pytest.mark.parametrize(
    ("before", "sizes"),
    [
        (loop(), {"x": [5, 4]}),
        (loop(t="?", n="?"), {"x": [5, 4], "h": [4]}),
        (loop(n="N"), {"x": [5, None]}),
        (loop(n="N"), {"h": [4]}),
        (model_from_text(SCAN_8, 8, check=False), {"x": [2, 5, 4]}),
        (model_from_text(SCAN_8, 8, check=False), {"x": [None, 5, 4]}),
    ],
    ids=["steps", "no names", "steps alone", "features alone", "opset 8", "opset 8 steps alone"],
)
@pytest.mark.parametrize("target", ["cpu", "coreml"])
def test_a_large_model_is_equal_to_itself_with_sizes_built_in(before, sizes, target):
    after = ortscan.optimize(before, fix_shapes=sizes, target=target, verify=False)
    outcome = verify(before, after, shapes=sizes, level="quick")
    assert outcome.outcome == "equal", outcome.summary()
    assert "loops separately, each on its own inputs" in outcome.summary()


def test_a_fault_in_a_loop_of_known_sizes_is_found():
    before, after = loop(), ortscan.optimize(loop(out="Sin(s1)"), fix_shapes={"x": [5, 4]}, verify=False)
    outcome = verify(before, after, shapes={"x": [5, 4]}, level="quick")
    assert outcome.outcome == "different"
    assert "Loop 'last' differs on its own" in outcome.notes
    assert outcome.first_difference.case.dims == {"T": 5}


def test_optimize_compares_a_large_model_at_the_sizes_that_it_builds_in():
    assert [node.op_type for node in ortscan.optimize(loop(), fix_shapes={"x": [1, 4]}).graph.node].count("Loop") == 0


def test_a_loop_that_differs_on_sizes_it_may_never_get_says_nothing_where_the_models_do_not_run():
    before, after = (model_from_text(UNKNOWN.format(r), 17) for r in ("r = Neg(p)", "q = Neg(p) r = Reshape(q, two)"))
    assert verify(before, after, shapes={"x": [5, 4]}, level="quick").outcome == "inconclusive"
