"""A product with a reciprocal reads no copy, which onnxruntime would lose."""

import numpy as np
import pytest

import ortscan
from rewrites.driver.model_changes import change_model
from rewrites.tidy import products_of_copies
from tests.rewrites.apply import prepared, read
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

PRODUCT = """g (float[2] x, float[2] a) => (float[2] y) <float one = {1}, float two = {2}, bool yes = {1}, float half = {0.5}> {
    BEFORE v = COPY d = Div (NUMERATOR, a) y = Mul (OPERANDS) }"""


def factors(copy: str, numerator: str = "one", operands: str = "d, v", before: str = "") -> list[str | None]:
    text = PRODUCT.replace("COPY", copy).replace("NUMERATOR", numerator).replace("OPERANDS", operands)
    text = text.replace("BEFORE", before)
    ctx = prepared(text)
    change_model(products_of_copies.RULE, ctx)
    (product,) = [node for node in ctx.model.graph if node.op_type == "Mul"]
    return [value.name for value in product.inputs if value is not None]


@pytest.mark.parametrize("copy", ["Identity (x)", "Cast <to = 1> (x)", "Dropout (x)"])
def test_a_product_with_a_reciprocal_reads_what_was_copied(copy: str) -> None:
    assert factors(copy) == ["d", "x"]
    assert factors(copy, operands="v, d") == ["x", "d"]


def test_a_chain_of_copies_is_followed() -> None:
    assert factors("Identity (w)", before="w = Cast <to = 1> (x)") == ["d", "x"]
    assert factors("Identity (w)", before="k = Cast <to = 10> (x) w = Cast <to = 1> (k)") == ["d", "w"]


@pytest.mark.parametrize("copy", ["Abs (x)", "Dropout (x, half, yes)"])
def test_a_value_that_is_no_copy_stays(copy: str) -> None:
    assert factors(copy) == ["d", "v"]


def test_other_quotients_may_be_multiplied_by_copies() -> None:
    assert factors("Identity (x)", numerator="two") == ["d", "v"]


def test_a_loop_that_leaves_a_reciprocal_and_a_copy_runs() -> None:
    model = read(
        """g (float[2] x, float[2] a) => (float[2] h) <int64 m = {1}, bool yes = {1}, float one = {1}> {
            v = Identity (x)
            h = Loop <body = b (int64 i, bool c, float[2] s) => (bool c1, float[2] s1) {
                c1 = Identity (c) n = Neg (s) e = Exp (n) t = Add (one, e) d = Div (one, t) s1 = Mul (d, v) }> (m, yes, a) }"""
    )
    after = ortscan.optimize(model)
    assert "Loop" not in [node.op_type for node in after.graph.node]
    feeds = {"x": np.ones(2, np.float32), "a": np.ones(2, np.float32)}
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
