"""Loops with a state that each step extends by a Concat: which of them have a plan, and its numbers beside those of onnxruntime."""

import numpy as np
import pytest

from rewrites.base.not_applicable import NotApplicable
from rewrites.driver.prepare import prepare
from rewrites.loops import view
from rewrites.native.compiling import CompiledLoop, compile_loop
from rewrites.native.encoding import encode
from rewrites.native.plan import PlanState, Size, Storage, Symbol
from tests.rewrites.apply import context_of, one_loop, read
from tests.rewrites.harness import loop
from tests.support.plan_decoder import decode
from tests.support.plan_interpreter import run_plan
from tests.support.runtime import ort_run

SUM = (
    "r = Unsqueeze (h, axis) k1 = Concat <axis = 1> (k, r) a = ReduceSum <keepdims = 0> (k1, axis) h1 = Tanh (a) y = Identity (h1)"
)
GROWING = {
    "inputs": "float[2] h, float[2,L] k",
    "outputs": "float[2] h1, float[2,L1] k1, float[2] y",
    "given": "float[2] s, float[2,P] c0",
    "operands": "s, c0",
    "results": "float[2] z, float[2,K] cT, float[N,2] ys",
    "outer": "z, cT, ys",
}
AXES = "int64[1] axis = {1}, int64[1] one = {1}, int64[1] last = {-1}, int64[1] end = {2147483647}"


def compiled(inside: str, **changes: str) -> tuple[str, CompiledLoop | NotApplicable]:
    parts = {**GROWING, **changes}
    text = loop(inside, steps=None, weights=AXES, **parts)
    ctx = context_of(read(text, 18))
    prepare(ctx)
    return text, compile_loop(view(one_loop(ctx), ctx.opset), ctx)


@pytest.mark.parametrize(
    "inside",
    [
        SUM,
        SUM.replace("k1 = Concat", "k0 = Concat").replace("(k1, axis)", "(k0, axis) k1 = Identity (k0)"),
        SUM.replace("a = ReduceSum <keepdims = 0> (k1, axis)", "e = Exp (k1) n = Softmax <axis = 1> (e) q = Mul (k1, n) a = ReduceSum <keepdims = 0> (q, axis)"),
        SUM.replace("(k1, axis)", "(k, axis)"),
        SUM.replace("r = Unsqueeze (h, axis)", "g = Unsqueeze (h, axis) f = Neg (g) r = Concat <axis = 1> (g, f, g)"),
        SUM.replace("a = ReduceSum <keepdims = 0> (k1, axis)", "t = Transpose (k1) g = MatMul (k1, t) a = ReduceSum <keepdims = 0> (g, axis)"),
    ],
)  # fmt: skip
def test_the_numbers_are_those_of_onnxruntime(inside: str) -> None:
    text, outcome = compiled(inside)
    assert isinstance(outcome, CompiledLoop), outcome
    assert outcome.plan.symbols[:2] == (Symbol(2, 1), Symbol(2, -2))
    for past, steps in ((0, 0), (0, 1), (1, 3), (4, 40)):
        random = np.random.default_rng(past)
        feeds = {"s": random.standard_normal(2).astype(np.float32), "c0": random.standard_normal((2, past)).astype(np.float32)}
        wanted = ort_run(read(text, 18), {**feeds, "m": np.array(steps)})
        got = run_plan(decode(encode(outcome.plan)), [np.array(True), feeds["s"], feeds["c0"], np.array(steps)])
        for left, right in zip(got, wanted, strict=True):
            np.testing.assert_allclose(left, right, rtol=2e-5, atol=2e-5, strict=True)


def test_states_that_grow_alike_share_their_length() -> None:
    inside = SUM + " q1 = Concat <axis = 1> (q, r) g = Mul (k1, q1) y2 = ReduceSum <keepdims = 0> (g, axis)"
    changes = {
        "inputs": GROWING["inputs"] + ", float[2,M] q",
        "outputs": "float[2] h1, float[2,L1] k1, float[2,M1] q1, float[2] y, float[2] y2",
        "given": "float[2] s, float[2,P] c0, float[2,P] d0",
        "operands": "s, c0, d0",
        "results": "float[2] z, float[2,K] cT, float[2,Q] dT, float[N,2] ys, float[N,2] y2s",
        "outer": "z, cT, dT, ys, y2s",
    }
    _, outcome = compiled(inside, **changes)
    assert isinstance(outcome, CompiledLoop), outcome
    assert len(outcome.plan.symbols) == 2
    assert outcome.plan.states[2:] == (PlanState(Storage.GROWS, Size(1), 1, 1), PlanState(Storage.GROWS, Size(1), 2, 1))
    _, two_names = compiled(inside, **{**changes, "given": "float[2] s, float[2,P] c0, float[2,O] d0"})
    assert isinstance(two_names, NotApplicable)


@pytest.mark.parametrize(
    "inside",
    [
        SUM.replace("(k, r)", "(r, k)"),
        SUM.replace("(k, r)", "(k, k)"),
        SUM.replace("(k, r)", "(k, r, r)"),
        SUM.replace("y = Identity (h1)", "n = Slice (k1, last, end, axis) y = Squeeze (n, axis)"),
        SUM.replace("y = Identity (h1)", "n = Shape (k1) f = Cast <to = 1> (n) y = Add (h1, f)"),
        SUM.replace("a = ReduceSum", "b = Concat <axis = 1> (k1, r) a = ReduceSum"),
        SUM.replace("a = ReduceSum", "b = Mul (k1, k) a = ReduceSum"),
        SUM.replace("h1 = Tanh (a)", "g = Add (a, w) h1 = Tanh (g)"),
    ],
)
def test_what_depends_on_the_length_in_other_ways_has_no_plan(inside: str) -> None:
    given = GROWING["given"] + (", float[P] w" if ", w)" in inside else "")
    _, outcome = compiled(inside, given=given)
    assert isinstance(outcome, NotApplicable)
    assert outcome.code in ("NATIVE-SHAPE", "NATIVE-FORM")
