"""An output that is declared with another rank than it has: what is made from a Loop's state stays a Loop's, and a reason says why.

Where another opset or fixed sizes were asked for, the result declares the rank that it has.
"""

import warnings

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.text import assert_same_numbers, model_from_text, ort_run

LOOP = """g (float[T,4] x, float[4] h0) => (DECLARED) <int64 zero = {0}, bool yes = {1}> {
    s = Shape (x) n = Gather (s, zero)
    STATE, y = Loop <body = b (int64 i, bool c, float[4] s0) => (bool c1, float[4] s1, float[4] y0) {
        c1 = Identity (c) r = Gather (x, i) t = Tanh (r) a = Mul (s0, t) s1 = Sub (a, t) y0 = Add (s1, t) }> (n, yes, h0) AFTER
}"""


def loop(declared: str, after: str = ""):
    text = LOOP.replace("DECLARED", declared).replace("STATE", "q" if after else "h").replace("AFTER", after)
    return model_from_text(text, 17, check=False)


@pytest.fixture(autouse=True)
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.long
@pytest.mark.parametrize("declared", ["float[4,1] h", "float h", "float[4,1] h, float[T,4] y"])
@pytest.mark.parametrize("options", [{}, {"target": "coreml", "fix_shapes": {"x": [5, 4]}}], ids=["free", "fixed"])
def test_a_state_declared_with_another_rank_leaves_the_loop_with_a_reason(declared, options):
    model = loop(declared)
    (entry,) = ortscan.explain(model, **options).loops
    found = [reason.detail for reason in entry.reasons if reason.code == "OUTPUT-RANK"]
    rank = 0 if declared == "float h" else 2
    assert found[:1] == [f"the model declares rank {rank} for the output 'h', which has rank 1"]
    after = ortscan.optimize(model, **options)
    assert [node.op_type for node in after.graph.node].count("Loop") == 1
    assert after.graph.output[0] == model.graph.output[0]


@pytest.mark.parametrize("after", ["h = Relu (q)", "r = Exp (q) h = Neg (r)"])
def test_what_is_made_from_such_a_state_leaves_the_model_as_it_is(after):
    model = loop("float[4,1] h, float[T,4] y", after)
    assert [node.op_type for node in ortscan.optimize(model).graph.node] == [node.op_type for node in model.graph.node]
    (entry,) = ortscan.explain(model).loops
    assert [reason.code for reason in entry.reasons] == ["OUTPUT-RANK"]


COMPUTED = """g (float[B,T,4] x) => (DECLARED) <int64[1] i0 = {0}, int64[1] i1 = {1}, int64[1] i2 = {2}> {
    s = Shape (x) b = Gather (s, i0) t = Gather (s, i1) n = Gather (s, i2) bt = Mul (b, t)
    two = Concat <axis = 0> (bt, n) f = Reshape (x, two) u = Relu (f)
    MADE
}"""
MADE = {
    "reshaped": "all = Concat <axis = 0> (b, t, n) y = Reshape (u, all)",
    "added to": "all = Concat <axis = 0> (b, t, n) v = Reshape (u, all) y = Add (v, x)",
    "made longer": "all = Concat <axis = 0> (i1, bt, n) y = Expand (u, all)",
    "cut": "all = Concat <axis = 0> (b, t, n) v = Reshape (u, all) y = Slice (v, i0, i1, i1)",
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_what_is_asked_for_is_done_and_the_output_has_its_rank(made: str) -> None:
    model = model_from_text(COMPUTED.replace("DECLARED", "float[1,seqlen] y").replace("MADE", made), 12, check=False)
    x = {"x": np.ones((2, 5, 4), np.float32)}
    for after in (ortscan.migrate(model, 21), ortscan.optimize(model, fix_shapes={"x": [2, 5, 4]})):
        assert len(after.graph.output[0].type.tensor_type.shape.dim) == 3
        assert_same_numbers(ort_run(after, x), ort_run(model, x))
        onnx.checker.check_model(after, full_check=True)
    assert (
        "the model declares rank 2 for the output 'y', which has rank 3: the result declares that"
        in ortscan.explain(model, opset=21).messages
    )


@pytest.mark.parametrize("declared", ["float[B,T,4] y", "float[?,?,?] y", "float[batch,time,4] y"])
def test_the_right_rank_stays_as_it_is_declared(declared: str) -> None:
    model = model_from_text(COMPUTED.replace("DECLARED", declared).replace("MADE", MADE["reshaped"]), 12, check=False)
    assert ortscan.migrate(model, 21).graph.output[0] == model.graph.output[0]
    assert not [said for said in ortscan.explain(model, opset=21).messages if "rank" in said]


@pytest.mark.parametrize("after", ["h = Relu (q)", "r = Exp (q) h = Neg (r)"])
def test_what_is_made_from_a_state_is_declared_anew_where_something_else_was_asked_for(after: str) -> None:
    model = loop("float[4,1] h, float[T,4] y", after)
    x = {"x": np.ones((5, 4), np.float32), "h0": np.ones(4, np.float32)}
    for result in (ortscan.migrate(model, 21), ortscan.optimize(model, fix_shapes={"x": [5, 4]})):
        assert len(result.graph.output[0].type.tensor_type.shape.dim) == 1
        assert_same_numbers(ort_run(result, x), ort_run(model, x))


def test_the_rank_that_it_has_is_no_reason():
    assert "Loop" not in {node.op_type for node in ortscan.optimize(loop("float[4] h, float[T,4] y")).graph.node}
    assert "Loop" not in {node.op_type for node in ortscan.optimize(loop("float[N] h, float[T,4] y")).graph.node}
