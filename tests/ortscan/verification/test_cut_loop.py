"""Loops of a large model are extracted at values that may be arbitrary, and compared one by one."""

import onnx
import pytest

from ortscan.verification import compare_loops, verify
from tests.support.text import model_from_text

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


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(compare_loops, "LARGE_NODES", 0)


@pytest.mark.usefixtures("everything_is_large")
def test_the_loops_of_a_large_model_are_compared_one_by_one():
    outcome = verify(chain(), chain(out="m = Tanh(a2) yt2 = Identity(m)"), level="quick")
    assert outcome.outcome == "equal"
    assert [output.name for output in outcome.outputs] == ["last2", "z"]
    assert "compared 1 of 2 loops separately, each on its own inputs\n1 more are unchanged" in outcome.summary()
    assert "not tried: the nodes outside loops" in outcome.summary()


@pytest.mark.usefixtures("everything_is_large")
def test_a_fault_in_one_loop_of_a_large_model_is_found_and_named():
    outcome = verify(chain(), chain(out="yt2 = Sin(a2)"), level="quick")
    assert outcome.outcome == "different"
    assert outcome.first_difference.output == "z"
    assert "Scan 'last2' differs on its own" in outcome.notes


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
    assert (outcome.outcome, outcome.problems) == ("inconclusive", ("no loop could be compared separately",))
    assert "not tried: Scan 'u' (none of its results has the same name in both models)" in outcome.summary()
