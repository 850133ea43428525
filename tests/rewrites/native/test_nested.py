"""What a body holds: Ifs whose branches are both computed, inner loops written out, convolutions as products."""

import numpy as np
import pytest

from tests.rewrites.harness import scan
from tests.rewrites.native.harness import refusal, same_numbers

THEN = "then_branch = p () => (float[2] u) {{ {} }}"
ELSE = "else_branch = q () => (float[2] v) {{ {} }}"


def chosen(then: str, other: str, before: str = "b = ReduceSum <keepdims = 0> (x) c = Greater (b, low)") -> str:
    node = f"a = If (c) <{THEN.format(then)}, {ELSE.format(other)}>"
    return scan(
        f"{before} {node} h1 = Add (h, a) y = Identity (a)", weights="float low = {0.2}, int64[1] k = {1}, float[2] w = {2, 3}"
    )


def test_of_an_if_the_branch_that_the_condition_says_is_taken_in_each_step() -> None:
    same_numbers(chosen("u = Tanh (x)", "t = Mul (h, w) v = Neg (t)"))
    same_numbers(chosen("u = Identity (h)", "k0 = Shape (h) v = ConstantOfShape (k0)"))
    inner = f"d = Less (b, low) u = If (d) <{THEN.format('u = Exp (x)')}, {ELSE.format('v = Abs (x)')}>".replace(
        "u = Exp", "u2 = Exp"
    )
    inner = (
        inner.replace("(float[2] u) ", "(float[2] u2) ").replace("(float[2] v) ", "(float[2] v2) ").replace("v = Abs", "v2 = Abs")
    )
    same_numbers(chosen(inner, "v = Neg (x)"))


def test_a_condition_of_the_loop_and_branches_of_bools_and_numbers() -> None:
    text = scan(
        "a, b = If (flag) <then_branch = p () => (bool[2] u, int64 m) { u = Less (h, x) m = Constant <value = int64 {3}> () }, "
        "else_branch = q () => (bool[2] v, int64 n) { v = Less (x, h) n = Constant <value = int64 {4}> () }> "
        "f = Cast <to = 1> (a) g = Cast <to = 1> (b) e = Mul (f, g) h1 = Add (h, e) y = Identity (e)",
        given="float[2] s, float[3,2] xs, bool flag",
    )
    for flag in (False, True):
        feeds = {"s": np.float32([1, 2]), "xs": np.float32([[0.5, 3], [2, 1], [0, 9]]), "flag": np.array(flag)}
        same_numbers(text, feeds)


@pytest.mark.parametrize("inside", ["u = Concat <axis = 0> (x, x)", "u = Asinh (x)"])
def test_branches_of_other_shapes_or_without_a_plan_refuse_the_loop(inside: str) -> None:
    text = chosen(inside, "v = Neg (x)").replace("(float[2] u)", "(float[N] u)").replace("y = Identity (a)", "y = Identity (x)")
    assert refusal(text, 20) in ("NATIVE-SHAPE", "NATIVE-OPERATOR")


INNER = "num_scan_inputs = 1, body = i (float g, float r) => (float g1, float o) {{ {} }}"


def nested(inside: str, attributes: str = "") -> str:
    node = f"g0, a = Scan <{attributes}{INNER.format(inside)}> (zero, x)"
    return scan(f"{node} h1 = Add (h, a) y = Add (a, g0)", weights="float zero = {0}, float half = {0.5}")


def test_an_inner_scan_is_written_out() -> None:
    same_numbers(nested("t = Mul (g, half) g1 = Add (t, r) o = Tanh (g1)"))
    ways = "scan_input_directions = [1], scan_output_directions = [1], "
    same_numbers(nested("m = ReduceMax <keepdims = 0> (h) t = Mul (g, m) g1 = Add (t, r) o = Sub (t, r)", ways))


def test_an_inner_loop_knows_the_number_of_its_step() -> None:
    node = "g0, a = Loop (n, , zero) <body = i (int64 j, bool c, float g) => (bool d, float g1, float o) {"
    node += " d = Identity (c) e = Gather (x, j) f = Cast <to = 1> (j) o = Mul (e, f) g1 = Add (g, o) }>"
    body = f"{node} h1 = Add (h, a) y = Mul (a, g0)"
    same_numbers(scan(body, weights="float zero = {0}, int64 n = {2}"))


def test_inner_loops_of_unknown_or_too_many_steps_refuse_the_loop() -> None:
    node = "g0, a = Loop (n, , zero) <body = i (int64 j, bool c, float g) => (bool d, float g1, float[2] o) {"
    node += " d = Less (g, zero) g1 = Add (g, zero) o = Identity (x) }> b = ReduceMax <keepdims = 0, axes = [0]> (a)"
    body = f"{node} h1 = Add (h, b) y = Identity (b)"
    assert refusal(scan(body, weights="float zero = {0}, int64 n = {2}"), 17) == "NATIVE-FORM"
    many = {"given": "float[3000] s, float[3,3000] xs", "inputs": "float[3000] h, float[3000] x"}
    many |= {"outputs": "float[3000] h1, float[3000] y", "results": "float[3000] z, float[3,3000] ys"}
    inside = INNER.format("t = Mul (g, r) g1 = Add (t, r) o = Tanh (g1)")
    text = scan(f"g0, a = Scan <{inside}> (zero, x) h1 = Add (h, a) y = Add (a, g0)", weights="float zero = {0}", **many)
    assert refusal(text) == "NATIVE-LIMIT"


@pytest.mark.parametrize(
    ("x", "w", "y", "attributes"),
    [
        ("2,3,7", "4,3,3", "2,4,7", "pads = [1, 1]"),
        ("2,3,7", "4,3,2", "2,4,3", "strides = [2]"),
        ("1,4,9", "6,2,3", "1,6,6", "group = 2, dilations = [2], pads = [0, 1]"),
        ("1,2,5,6", "3,2,3,2", "1,3,3,5", ""),
        ("2,2,5,4", "2,1,3,3", "2,2,3,2", "group = 2, pads = [1, 1, 1, 1], strides = [2, 2]"),
        ("1,2,2", "3,2,3", "1,3,6", "pads = [4, 2]"),
    ],
)
def test_a_convolution_is_a_product(x: str, w: str, y: str, attributes: str) -> None:
    kinds = y.split(",")[1]
    text = scan(
        f"a = Conv <{attributes}> (x, w, b) h1 = Add (h, a) y = Tanh (h1)".replace("<>", ""),
        given=f"float[{y}] s, float[3,{x}] xs, float[{w}] w, float[{kinds}] b",
        inputs=f"float[{y}] h, float[{x}] x",
        outputs=f"float[{y}] h1, float[{y}] y",
        results=f"float[{y}] z, float[3,{y}] ys",
    )
    same_numbers(text)


def test_a_one_is_where_an_index_says_and_nowhere_where_it_is_outside() -> None:
    text = scan(
        "i = Cast <to = 7> (x) a = OneHot <axis = 0> (i, n, v) b = ReduceSum (a, k) h1 = Add (h, b) y = OneHot (i, n, v)",
        weights="int64 n = {3}, float[2] v = {-1, 2}, int64[1] k = {0}",
        outputs="float[2] h1, float[2,3] y",
        results="float[2] z, float[5,2,3] ys",
        given="float[2] s, float[5,2] xs",
    ).replace("ReduceSum (a, k)", "ReduceSum <keepdims = 0> (a, k)")
    same_numbers(text, {"s": np.zeros(2, np.float32), "xs": np.float32([[0, 1], [2, -1], [-3, 3], [-4, 9], [1, -2]])})
