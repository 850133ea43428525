"""Products of joined parts are split where the part without a state can leave, and only there."""

import numpy as np
import pytest

from rewrites.fission import loop_fission, split_products
from tests.rewrites.apply import apply, patches
from tests.rewrites.harness import becomes, scan, stays
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

SIZES = {
    "inputs": "float[1,2] h, float[1,8] x",
    "outputs": "float[1,2] h1, float[1,2] y",
    "given": "float[1,2] s, float[3,1,8] xs, float[10,2] W",
    "results": "float[1,2] z, float[3,1,2] ys",
}
PRODUCT = "c = Concat <axis = 1> (h, x) p = MatMul (c, W) h1 = Tanh (p) y = Identity (h1)"


def feeds(columns: int = 2) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {"s": (1, 2), "xs": (3, 1, 8), "W": (10, columns)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def test_the_rows_of_the_matrix_are_split_outside() -> None:
    becomes(
        split_products,
        scan(PRODUCT, **SIZES),
        scan(
            "a = MatMul (h, W1) b = MatMul (x, W2) p = Add (a, b) h1 = Tanh (p) y = Identity (h1)",
            before="W1 = Slice (W, k0, k2, k0) W2 = Slice (W, k2, k10, k0)",
            weights="int64[1] k0 = {0}, int64[1] k2 = {2}, int64[1] k10 = {10}",
            **SIZES,
        ),
        feeds=feeds(),
    )


@pytest.mark.parametrize(
    "product",
    [
        PRODUCT,
        PRODUCT.replace("(h, x)", "(x, h)"),
        PRODUCT.replace("MatMul (c, W)", "Gemm <alpha = 0.5, beta = 2.0> (c, W, b)"),
        PRODUCT.replace("MatMul (c, W)", "Gemm <transB = 1> (c, Wt, b)"),
        PRODUCT.replace("(h, x)", "(g, x)").replace("c =", "g = Neg (h) c ="),
        PRODUCT.replace("(h, x)", "(h, g)").replace("c =", "g = Neg (x) c ="),
        PRODUCT.replace("MatMul (c, W)", "MatMul (c, V)"),
    ],
)
def test_what_is_free_of_states_leaves(product: str) -> None:
    text = scan(
        product,
        before="Wt = Transpose <perm = [1, 0]> (W)",
        weights=f"float[2] b = {{1, 2}}, float[10,2] V = {{{', '.join(f'{i / 10}' for i in range(20))}}}",
        **SIZES,
    )
    after, report = apply(text, [split_products, loop_fission])
    assert patches(report)[:2] == ["split-products", "loop-fission"]
    given = feeds()
    before, _ = apply(text, [])
    assert_same_numbers(ort_run(after, given), ort_run(before, given), rtol=1e-5, atol=1e-6)
    body = next(node for node in after.graph.node if node.op_type == "Scan").attribute
    names = [node.op_type for attribute in body if attribute.name == "body" for node in attribute.g.node]
    assert names.count("Gemm") + names.count("MatMul") == 1
    assert "Concat" not in names


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(h, x)", "(h, g)"),  # a state is behind both
        ("(h, x)", "(x, x2)"),  # behind none
        ("MatMul (c, W)", "MatMul (c, Wh)"),  # a matrix of the step
        ("axis = 1", "axis = 0"),
    ],
)
def test_other_products_stay(old: str, new: str) -> None:
    body = PRODUCT.replace(old, new).replace(
        "c =", "g = Concat <axis = 1> (h, h, h, h) x2 = Slice (x, k0, k2, k1) Wh = Add (W, h) c ="
    )
    if "axis = 0" in body:
        body = (
            body.replace("(h, x)", "(x, g)")
            .replace("MatMul (c, W)", "MatMul (k, W8)")
            .replace("p =", "k = Slice (c, k0, k1, k0) p =")
        )
    weights = "int64[1] k0 = {0}, int64[1] k1 = {1}, int64[1] k2 = {2}, float[8,2] W8 = {" + ", ".join(["1"] * 16) + "}"
    stays(split_products, scan(body, weights=weights, **SIZES))


def test_a_few_columns_stay() -> None:
    sizes = {key: value.replace("8]", "7]").replace("10,", "9,") for key, value in SIZES.items()}
    stays(split_products, scan(PRODUCT, **sizes))


def test_a_join_of_several_states_stays_where_little_leaves() -> None:
    sizes = SIZES | {"given": "float[1,2] s, float[3,1,8] xs, float[12,2] W"}
    stays(split_products, scan(PRODUCT.replace("(h, x)", "(h, g, x)").replace("c =", "g = Neg (h) c ="), **sizes))
