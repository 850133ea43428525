"""If the target lacks If, an If whose condition follows from constants and declared sizes is removed, with or without loops."""

import numpy as np
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

MODEL = """g (float[T,4,2] x, int64[1] n) => (float[T,4,2] y) <bool yes = {1}, float[3] w = {1, 2, 3}, int64[1] two = {2}, int64[1] one = {1}, int64[1] three = {3}> {
    CONDITION
    y = If (c) <then_branch = t () => (float[T,4,2] a) { a = Tanh (x) }, else_branch = e () => (float[T,4,2] b) { b = Neg (x) }> }"""
KNOWN = {
    "copied": "c = Identity (yes)",
    "negated": "c = Not (yes)",
    "a size": "s = Shape (x) k = Constant <value_int = 1> () d = Gather (s, k) f = Constant <value_int = 4> () c = Equal (d, f)",
    "a size from the end": "s = Shape (x) k = Constant <value_int = -1> () d = Gather (s, k) f = Constant <value_int = 3> () c = Less (d, f)",
    "sizes cut out": "s = Shape (x) p = Slice (s, one, three) q = ReduceProd <keepdims = 0> (p) f = Constant <value_int = 8> () c = Equal (q, f)",
    "sizes of sizes": "s = Shape (x) r = Shape (s) k = Equal (r, three) c = Squeeze (k)",
    "how many weights": "s = Size (w) f = Constant <value_int = 2> () c = Greater (s, f)",
    "a part of a shape": "s = Shape <start = 1> (x) k = Constant <value_int = 0> () d = Gather (s, k) f = Constant <value_int = 4> () c = Equal (d, f)",
}
FREE = {
    "the free size": "s = Shape (x) k = Constant <value_int = 0> () d = Gather (s, k) f = Constant <value_int = 4> () c = Equal (d, f)",
    "with the free size": "s = Shape (x) z = Sub (one, one) p = Slice (s, z, two) q = ReduceProd <keepdims = 0> (p) f = Constant <value_int = 8> () c = Equal (q, f)",
    "a computed index": "s = Shape (x) d = Gather (s, n) f = Equal (d, two) c = Squeeze (f)",
}


def kinds(condition, **options):
    model = model_from_text(MODEL.replace("CONDITION", condition), 17)
    after = ortscan.optimize(model, **options)
    for steps in (1, 4):
        feeds = {"x": np.random.default_rng(0).normal(size=(steps, 4, 2)).astype(np.float32), "n": np.array([1])}
        assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
    return [node.op_type for node in after.graph.node]


@pytest.mark.parametrize("condition", KNOWN)
@pytest.mark.parametrize("target", ["coreml", "nnapi"])
def test_what_is_known_decides_an_if(condition, target):
    assert kinds(KNOWN[condition], target=target) == ["Neg" if condition == "negated" else "Tanh"]


@pytest.mark.parametrize("condition", FREE)
def test_what_is_free_does_not(condition):
    assert "If" in kinds(FREE[condition], target="coreml")


def test_it_is_a_change_that_is_reported():
    report = ortscan.explain(model_from_text(MODEL.replace("CONDITION", KNOWN["a size"]), 17), target="coreml")
    assert report.changed
    assert [fired.rule for fired in report.changes][-1] == "decide-branches"
