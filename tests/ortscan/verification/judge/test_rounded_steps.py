"""A loop that stops as soon as noise has the right sign may run another number of steps after a rewrite."""

import onnx
import pytest

import ortscan
from tests.support.text import model_from_text

LOOP = """<ir_version: 9, opset_import: ["": 17]> g (float[T, 5] x, float[5] a) => (float[N, 5] ys)
<int64 most = {8}, bool yes = {1}, float bound = {BOUND}> {
    z, ys = Loop (most, yes, a) <body = b (int64 i, bool c, float[5] s) => (bool c1, float[5] s1, float[5] v) {
        n = Constant <value_int = 0> () r = Gather (x, n) p = Add (s, r) m = ReduceMean <keepdims = 1> (p)
        d = Sub (p, m) t = ReduceSum <keepdims = 0> (d) s1 = Tanh (SUM) v = Identity (s1) c1 = Less (t, bound) }> }"""


def stopping(bound: str, total: str = "p") -> onnx.ModelProto:
    """Return a loop that runs until a sum of deviations from the mean, which is 0 but for rounding, reaches ``bound``."""
    return model_from_text(LOOP.replace("BOUND", bound).replace("SUM", total))


def reordered(bound: str) -> onnx.ModelProto:
    """Return the same loop with a mean that adds the elements in another order."""
    text = LOOP.replace("m = ReduceMean <keepdims = 1> (p)", "q = Mul (p, w) m = ReduceSum <keepdims = 1> (q)")
    return model_from_text(text.replace("{BOUND}", f"{{{bound}}}, float w = {{0.2}}").replace("SUM", "p"))


def test_another_number_of_steps_is_no_difference_if_rounding_decides_it() -> None:
    outcome = ortscan.verify(stopping("0.0"), reordered("0.0"))
    assert outcome.ok, outcome.summary()
    assert "rounding decides how many steps a loop of the original runs" in outcome.summary()


@pytest.mark.parametrize("bound", ["0.5", "-0.5"])
def test_another_number_of_steps_is_a_difference_if_the_bound_is_far(bound: str) -> None:
    outcome = ortscan.verify(stopping(bound), stopping("0.5" if bound == "-0.5" else "-0.5"))
    assert not outcome.ok
    assert "shape" in outcome.summary()


def test_the_steps_that_run_are_still_compared() -> None:
    assert not ortscan.verify(stopping("0.5"), stopping("0.5", "d")).ok
