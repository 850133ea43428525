"""Sizes of a step that are known only when the model runs: one plan for all of them."""

import pytest

from rewrites.driver.prepare import prepare
from rewrites.loops import view
from rewrites.native.compiling import compile_loop
from rewrites.native.plan import Size, Symbol
from tests.rewrites.apply import context_of, one_loop, read
from tests.rewrites.harness import loop, scan
from tests.rewrites.native.harness import refusal, same_numbers

FREE = {
    "inputs": "float[B,4] h, float[B,4] x",
    "outputs": "float[B,4] h1, y",
    "given": "float[B,4] s, float[T,B,4] xs, float[4,4] w",
    "results": "float[B,4] z, float[] ys",
    "weights": "int64[1] one = {1}, int64[1] zero = {0}, int64[1] two = {2}, int64[1] five = {5}, int64[1] end = {2147483647}, int64[3] cube = {0, 2, 2},"
    " int64[1] flat = {-1}, int64[2] rows = {-1, 8}, int64[2] square = {4, 4}",
}
BODIES = {
    "elementwise": "a = Mul (h, x) h1 = Sub (a, x) y = Tanh (h1)",
    "a product by a captured matrix": "a = MatMul (h, w) b = Add (a, x) h1 = Tanh (b) y = Identity (h1)",
    "normalisation beside it": "a, b = Split <axis = 1, num_outputs = 2> (x) c = Softmax (a) d = Concat <axis = 1> (b, c) h1 = Add (h, d) y = Exp (c)",
    "other shapes": "a = Reshape (x, cube) b = Transpose <perm = [0, 2, 1]> (a) c = Reshape (b, flat) d = Exp (c) e = Reshape (d, square0) h1 = Add (h, e) y = Neg (a)",
    "other shapes by allowzero": "a = Shape (x) b = Slice (a, zero, one) c = Concat <axis = 0> (b, two, two)"
    " d = Reshape <allowzero = 1> (x, c) e = Transpose <perm = [0, 2, 1]> (d) f = Reshape <allowzero = 1> (e, a) h1 = Add (h, f) y = Neg (d)",
    "all of an axis": "a = Slice (x, zero, end, zero) h1 = Add (h, a) y = Unsqueeze (h1, one)",
    "a sum of all rows": "a = ReduceSum <keepdims = 1> (x, zero) b = Exp (a) h1 = Add (h, b) y = Mul (x, b)",
    "a mean of all rows": "a = ReduceMean <keepdims = 1> (x, zero) h1 = Sub (h, a) y = Exp (x)",
    "a square of rows": "t = Transpose <perm = [1, 0]> (x) a = MatMul (h, t) b = Tanh (a) c = MatMul (b, x) h1 = Tanh (c) y = Add (h, c)",
    "two rows": "a = Tanh (h) h1 = Add (a, x) b = Exp (h1) y = Mul (h, b)",
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("size", [1, 2, 7])
def test_one_plan_is_for_all_sizes(body: str, size: int) -> None:
    weights = FREE["weights"] + ", int64[2] square0 = {-1, 4}"
    plan = same_numbers(scan(BODIES[body], **{**FREE, "weights": weights}), B=size, T=3)
    assert plan.symbols == (Symbol(0, 0),)
    assert plan.inputs[1].dims == (Size(1, (1,)), Size(4))


def test_sizes_by_two_names_are_two() -> None:
    text = scan(
        "a = MatMul (x, m) h1 = Tanh (h) y = Add (a, h)",
        inputs="float[B,C] h, float[B,4] x",
        outputs="float[B,C] h1, float[B,C] y",
        given="float[B,C] s, float[T,B,4] xs, float[4,C] m",
        results="float[B,C] z, float[] ys",
    )
    plan = same_numbers(text, B=2, C=3, T=4)
    assert plan.symbols == (Symbol(0, 0), Symbol(0, 1))
    assert plan.regions == (Size(16, (1, 1)),)


def test_what_depends_on_sizes_in_other_ways_is_in_another_region() -> None:
    inside = "a = ReduceSum <keepdims = 1> (x, zero) b = Exp (a) c = Tanh (h) h1 = Add (c, b) y = Mul (h, b)"
    assert same_numbers(scan(inside, **FREE), B=3, T=4).regions == (Size(32, (1,)), Size(16))


@pytest.mark.parametrize(
    "inside",
    [
        "a = Slice (x, zero, one, zero) h1 = Add (h, a) y = Identity (h1)",
        "a = Slice (x, zero, five, zero) h1 = Add (h, a) y = Identity (h1)",
        "a = Gather <axis = 0> (x, one) h1 = Add (h, a) y = Identity (h1)",
        "a = Concat <axis = 0> (x, h) h1 = Tanh (h) y = Identity (a)",
        "a, b = Split <axis = 0, num_outputs = 2> (x) h1 = Tanh (h) y = Add (a, b)",
        "a = Reshape (x, square) h1 = Tanh (h) y = Identity (a)",
        "a = Squeeze (x, zero) h1 = Add (h, a) y = Identity (h1)",
        "a = Squeeze (x) h1 = Add (h, a) y = Identity (h1)",
        "a = Add (x, w) h1 = Tanh (h) y = Identity (a)",
        "n = Shape (x) i = Slice (n, zero, one) a = Gather (table, i) h1 = Add (h, a) y = Identity (h1)",
        "n = Shape (x) k = Slice (n, zero, one) a, i = TopK (table, k) b = ReduceSum (a) h1 = Add (h, b) y = Identity (h1)",
    ],
)
def test_what_would_depend_on_how_large_it_is_refuses_the_loop(inside: str) -> None:
    given = FREE["given"] + ", float[200] table"  # a batch may have more rows than the table
    assert refusal(scan(inside, **{**FREE, "given": given})) in ("NATIVE-SHAPE", "NATIVE-FORM")


def test_a_size_without_a_name_is_no_other() -> None:
    nameless = {
        "inputs": "float[A,4] h, float[B,4] x",
        "outputs": "float[A,4] h1, y",
        "given": "float[A,4] s, float[T,B,4] xs",
        "results": "float[] z, float[] ys",
    }
    assert refusal(scan("h1 = Add (h, x) y = Identity (h1)", **nameless)) == "NATIVE-SHAPE"
    same_numbers(scan("h1 = Tanh (h) y = Exp (x)", **nameless), A=2, B=3)


@pytest.mark.parametrize(
    ("inside", "given", "symbols"),
    [
        (
            "a = Concat <axis = 1> (h, x) b = Tanh (a) h1, y = Split <axis = 1, num_outputs = 2> (b)",
            "float[A,4] s, float[T,B,4] xs",
            1,
        ),
        ("a = MatMul (h, w) h1 = Tanh (a) y = Exp (x)", "float[A,C] s, float[T,A,4] xs, float[4,4] w", 1),
        ("a = Gemm (h, w) h1 = Tanh (a) y = Exp (x)", "float[A,4] s, float[T,B,4] xs, float[C,4] w", 2),
        ("a = MatMul (h, w) h1 = Tanh (a) y = Exp (x)", "float[A,C] s, float[T,B,4] xs, float[D,C] w", 3),
        ("a = Concat <axis = 1> (h, x, g) y = Tanh (a) h1 = Exp (h)", "float[A,4] s, float[T,B,4] xs, float[E,4] g", 1),
    ],
)
def test_sizes_that_an_operator_takes_to_be_the_same_are_one(inside: str, given: str, symbols: int) -> None:
    text = scan(inside, inputs="float[M,N] h, float[K,L] x", outputs="h1, y", given=given, results="float[] z, float[] ys")
    plan = same_numbers(text, A=2, B=2, C=4, D=4, E=2, T=3)
    assert len(plan.symbols) == symbols


def test_sizes_of_a_loop_that_may_make_no_step_stay_two() -> None:
    inside = "a = MatMul (h, w) h1 = Tanh (a) y = Exp (a)"
    given = "float[A,C] s, float[D,C] w"
    for steps, code in ((3, None), (None, "NATIVE-SHAPE")):
        text = loop(inside, steps=steps, inputs="float[M,N] h", outputs="h1, y", given=given, results="float[] z, float[] ys")
        ctx = context_of(read(text.replace("m, ,", 'm, "",'), 18, check=False))
        prepare(ctx)
        outcome = compile_loop(view(one_loop(ctx), ctx.opset), ctx)
        assert getattr(outcome, "code", None) == code, outcome
