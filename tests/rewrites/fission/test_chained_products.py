"""Two products by constant matrices become one, where the numbers are those of sums in another order."""

import numpy as np
import pytest

from rewrites.fission import chained_products
from rewrites.graph.context import Options
from tests.rewrites.apply import apply, patches
from tests.rewrites.harness import becomes, loop, scan, stays
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

ROW = {
    "inputs": "float[1,2] h, float[1,2] x",
    "outputs": "float[1,2] h1, float[1,2] y",
    "given": "float[1,2] s, float[3,1,2] xs",
    "results": "float[1,2] z, float[3,1,2] ys",
}
WEIGHTS = (
    "float[2,3] A = {1, 2, 3, 4, 5, 6}, float[3,2] B = {0.5, -1, 0.25, 2, 1, 1}, float[3] c = {1, -2, 3}, float[1,2] d = {3, 5}"
)
LEFT = (
    "float[3,2] A = {1, 4, 2, 5, 3, 6}, float[2,3] B = {0.5, 0.25, 1, -1, 2, 1}, float[3,1] c = {1, -2, 3}, float[1,2] d = {3, 5}"
)
TAIL = "n = Softmax <axis = -1> (p) h1 = Mul (n, x) y = Identity (h1)"
FEEDS = {"s": np.float32([[0.5, -1]]), "xs": np.float32([[[1, 2]], [[-1, 3]], [[0.5, 0.5]]])}


def row(inside: str, weights: str = WEIGHTS) -> str:
    return scan(f"{inside} {TAIL}", weights=weights, **ROW)


def multiplied(text: str, *, feeds: dict[str, np.ndarray] = FEEDS, products: int = 1, opset: int = 18) -> None:
    """One product is left, and onnxruntime gives the same."""
    before, _ = apply(text, [], opset=opset)
    after, report = apply(text, [chained_products], opset=opset)
    assert patches(report) == ["chained-products"] * products
    body = next(attribute.g for node in after.graph.node for attribute in node.attribute if attribute.name == "body")
    assert sum(node.op_type in ("MatMul", "Gemm") for node in body.node) == 1
    assert_same_numbers(ort_run(after, feeds), ort_run(before, feeds))


def test_the_matrices_are_multiplied() -> None:
    becomes(
        chained_products,
        row("a = MatMul (h, A) b = Add (a, c) p = MatMul (b, B)"),
        scan(
            f"q = MatMul (h, AB) p = Add (q, cB) {TAIL}",
            own="float[2,2] AB = {4, 6, 9.25, 12}",
            weights="float[2] cB = {3, -2}",
            **ROW,
        ),
        feeds=FEEDS,
    )


@pytest.mark.parametrize(
    "inside",
    [
        "a = MatMul (h, A) p = MatMul (a, B)",
        "a = Gemm (h, A, c) p = Gemm <beta = 0.5> (a, B, d)",
        "a = Gemm <alpha = 2.0, beta = 3.0> (h, A, c) p = MatMul (a, B)",
        "a = MatMul (h, A) b = Add (c, a) p = Gemm (b, B, x)",
        "At = Transpose (h) a = Gemm <transA = 1, alpha = 0.5> (At, A) p = Gemm <alpha = -1.0> (a, B)",
    ],
)
def test_whatever_is_added_and_scaled(inside: str) -> None:
    multiplied(row(inside))
    multiplied(row(inside), feeds={**FEEDS, "s": np.float32([[np.inf, -1]])})


def test_matrices_that_are_read_transposed() -> None:
    turned = "float[3,2] A = {1, 4, 2, 5, 3, 6}, float[2,3] B = {0.5, 0.25, 1, -1, 2, 1}"
    multiplied(row("a = Gemm <transB = 1> (h, A) p = Gemm <transB = 1> (a, B, x)", turned))


def test_three_matrices_and_matrices_on_the_left() -> None:
    multiplied(row("a = MatMul (h, A) b = MatMul (a, B) p = MatMul (b, E)", WEIGHTS + ", float[2,2] E = {1, 2, 3, -4}"), products=2)
    text = scan("g = Tanh (h) a = MatMul (A, g) b = Add (a, c) h1 = MatMul (B, b) y = Add (h1, x)", weights=LEFT, **ROW)
    text = text.replace("[1,2]", "[2,1]").replace("[3,1,2]", "[3,2,1]").replace("float[2,1] d", "float[1,2] d")
    multiplied(text, feeds={"s": FEEDS["s"].reshape(2, 1), "xs": FEEDS["xs"].reshape(3, 2, 1)})


def test_what_a_bounded_activation_gives_may_go_anywhere() -> None:
    inside = "g = Tanh (h) a = MatMul (g, A) p = MatMul (a, B) h1 = Add (p, x) y = Identity (p)"
    multiplied(scan(inside, weights=WEIGHTS, **ROW), feeds={**FEEDS, "s": np.float32([[np.inf, np.nan]])})
    state = "a = MatMul (h, A) p = MatMul (a, B) b = Add (p, x) h1 = Tanh (b) y = Identity (p)"
    multiplied(scan(state, weights=WEIGHTS, before="s1 = Sigmoid (s)", operands="s1, xs", **ROW))
    stays(chained_products, scan(state, weights=WEIGHTS, **ROW), "PRODUCTS-CORNERS", detail="'h' may be infinite")
    after, report = apply(scan(state, weights=WEIGHTS, **ROW), [chained_products], options=Options(fast_math=True))
    assert patches(report) == ["chained-products"]
    assert_same_numbers(ort_run(after, FEEDS), ort_run(apply(scan(state, weights=WEIGHTS, **ROW), [])[0], FEEDS))


def test_what_is_infinite_on_the_way_is_not_bounded_by_what_makes_it_small_again() -> None:
    inside = (
        "g = Tanh (h) u = Mul (g, l) v = Mul (u, l) w = Mul (v, k) a = MatMul (w, A) p = MatMul (a, B) h1 = Add (p, x) y = Neg (p)"
    )
    weights = WEIGHTS + ", float l = {1e25}, float k = {1e-38}"
    stays(chained_products, scan(inside, weights=weights, **ROW), "PRODUCTS-CORNERS", detail="'w' may be infinite")


def test_integers_that_wrap_stay_the_same() -> None:
    big = WEIGHTS.replace("float", "int64").replace("0.5, -1, 0.25", "4611686018427387905, -1, 9223372036854775807")
    inside = "a = MatMul (h, A) b = Add (a, c) h1 = MatMul (b, B) y = Identity (h1)"
    sizes = {key: text.replace("float", "int64") for key, text in ROW.items()}
    multiplied(scan(inside, weights=big, **sizes), feeds={"s": np.int64([[7, -3]]), "xs": np.zeros((3, 1, 2), np.int64)})


def test_of_a_loop_too() -> None:
    shape = {
        "inputs": ROW["inputs"].split(", float[1,2] x")[0],
        "outputs": ROW["outputs"],
        "results": "float[1,2] z, float[N,1,2] ys",
    }
    inside = "a = MatMul (h, A) p = MatMul (a, B) h1 = Softmax <axis = -1> (p) y = Identity (h1)"
    text = loop(inside, weights=WEIGHTS, given="float[1,2] s", **shape)
    multiplied(text, feeds={"s": FEEDS["s"]})


SQUARES = "float[2,2] A = {1, 2, 3, 4}, float[2,2] B = {5, 6, 7, 8}"


@pytest.mark.parametrize(
    ("inside", "weights"),
    [
        ("a = MatMul (h, A) b = MatMul (a, B) q = ReduceSum (a) p = Add (b, q)", WEIGHTS),
        ("a = MatMul (h, A) b = Add (a, a) p = MatMul (b, B)", WEIGHTS),
        ("a = MatMul (h, A) b = Tanh (a) p = MatMul (b, B)", WEIGHTS),
        ("x2 = Transpose (x) a = MatMul (h, x2) p = MatMul (a, B)", "float[1,2] B = {1, 2}"),
        ("a = MatMul (h, A) p = MatMul (a, B)", "float[2,1] A = {1, 2}, float[1,3] B = {3, 4, 5}"),
        ("a = MatMul (h, A) b = Transpose (a) q = MatMul (B, b) r = Transpose (q) p = Identity (r)", SQUARES),
    ],
)
def test_what_else_reads_it_or_stands_between_or_costs_more(inside: str, weights: str) -> None:
    stays(chained_products, row(inside, weights).replace("h1 = Mul (n, x)", "m = ReduceSum (n) h1 = Mul (m, x)"))


@pytest.mark.parametrize(
    ("weights", "detail"),
    [
        ("float[2,2] A = {1, 1, 1, 1}, float[2,2] B = {1, 1, -1.000001, -1.000001}", "cancels"),
        ("float[2,2] A = {1e30, 1, 1, 1}, float[2,2] B = {1e30, 1, 1, 1}", "not finite"),
    ],
)
def test_what_cancels_or_overflows_stays(weights: str, detail: str) -> None:
    stays(chained_products, row("a = MatMul (h, A) p = MatMul (a, B)", weights), "PRODUCTS-CORNERS", detail=detail)


def test_what_is_added_in_between_and_cancels_stays() -> None:
    weights = "float[2,2] A = {1, 2, 3, 4}, float[2,2] B = {1, 2, 1, 3}, float[2] c = {1e6, -1e6}"
    stays(chained_products, row("a = Gemm (h, A, c) p = MatMul (a, B)", weights), "PRODUCTS-CORNERS", detail="added in between")


def test_halves_and_matrices_of_the_caller_stay() -> None:
    halves = {key: text.replace("float", "float16") for key, text in ROW.items()}
    ones = "float16[2,3] A = {15360, 15360, 15360, 15360, 15360, 15360}, float16[3,2] B = {15360, 15360, 15360, 15360, 15360, 0}"
    stays(chained_products, scan(f"a = MatMul (h, A) p = MatMul (a, B) {TAIL}", weights=ones, **halves))
    given = {**ROW, "given": f"{ROW['given']}, float[2,3] A"}
    stays(
        chained_products, scan(f"a = MatMul (h, A) p = MatMul (a, B) {TAIL}", weights="float[3,2] B = {1, 2, 3, 4, 5, 6}", **given)
    )
