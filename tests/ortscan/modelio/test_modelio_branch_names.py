"""A branch's initializer with the name of an outer value that the other branch reads is refused: onnxruntime confuses them."""

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.errors import UnsupportedModel
from tests.support.text import model_from_text, ort_run

AROUND = {
    "an initializer": "g (float[3] x, bool c) => (float[3] y) <float[3] k = {1,2,3}> { IF }",
    "an input": "g (float[3] x, bool c, float[3] k) => (float[3] y) { IF }",
    "a result": "g (float[3] x, bool c) => (float[3] y) { k = Neg (x) IF }",
    "a body's": """g (float[3] x, bool c) => (float[3] y) <int64 m = {2}> { y = Loop (m, c, x) <body = b (int64 i, bool d, float[3] s) => (bool d1, float[3] s1)
        <float[3] k = {1,2,3}> { d1 = Identity (d) s1 = LAST }> }""",
}
IF = "y = If (c) <then_branch = t () => (float[3] a) <float[3] k = {-1,1,2}> { a = Mul (x, k) }, else_branch = e () => (float[3] b) { b = OTHER }>"
OTHER = "If (c) <then_branch = v () => (float[3] p) { p = Neg (k) }, else_branch = w () => (float[3] q) { q = Abs (x) }>"


def _model(around: str, other: str) -> onnx.ModelProto:
    text = AROUND[around].replace("IF", IF).replace("LAST", IF.removeprefix("y = ")).replace("OTHER", other)
    return model_from_text(text, 18)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("other", ["Add (x, k)", OTHER])
def test_a_name_of_which_it_is_not_clear_what_it_means_is_refused(around: str, other: str) -> None:
    for verb in (ortscan.optimize, lambda model: ortscan.migrate(model, 21)):
        with pytest.raises(
            UnsupportedModel, match=r"the initializer 'k' of a branch of If '.*' has the same name as a value that its other branch"
        ):
            verb(_model(around, other))


@pytest.mark.parametrize("around", AROUND)
def test_a_name_that_the_other_branch_does_not_read_is_as_good_as_any(around: str) -> None:
    model = _model(around, "Abs (x)")
    feeds = {"x": np.array([1, -2, 4], np.float32), "k": np.ones(3, np.float32)}
    for taken in (True, False):
        given = {name.name: (feeds | {"c": np.array(taken)})[name.name] for name in model.graph.input}
        np.testing.assert_array_equal(ort_run(ortscan.migrate(model, 21), given)[0], ort_run(model, given)[0])
