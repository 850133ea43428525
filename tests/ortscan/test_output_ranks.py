"""An output that is declared with another rank than it has: what is made from a Loop's state stays a Loop's, and a reason says why."""

import warnings

import pytest

import ortscan
from rewrites.base.errors import MigrationError, UnsupportedModel
from tests.support.text import model_from_text

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
    with pytest.raises(UnsupportedModel, match="declares rank 2 for the output 'h', which has rank 1"):
        ortscan.optimize(model, fix_shapes={"x": [5, 4]})
    with pytest.raises(MigrationError, match="declares rank 2 for the output 'h', which has rank 1"):
        ortscan.migrate(model, 21)


def test_the_rank_that_it_has_is_no_reason():
    assert "Loop" not in {node.op_type for node in ortscan.optimize(loop("float[4] h, float[T,4] y")).graph.node}
    assert "Loop" not in {node.op_type for node in ortscan.optimize(loop("float[N] h, float[T,4] y")).graph.node}
