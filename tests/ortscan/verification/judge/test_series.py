"""Dimensions with the same name that need different sizes run with different sizes."""

import pytest
from onnx import ModelProto

import ortscan
from tests.support.text import model_from_text

PRODUCTS = """m (float[T, N] x, float[N] z) => (float[T, 4] y) {
    ws = Constant<value = int64[2] {5, 4}>()
    vs = Constant<value = int64[2] {7, 4}>()
    t = Constant<value = float {0.1}>()
    w = Expand(t, ws)
    v = Expand(t, vs)
    xw = MatMul(x, w)
    zv = MatMul(z, v)
    xz = Add(xw, zv)
    y = Identity(xz)
}"""
TWICE_AS_MANY_ROWS = """m (float[N, 4] x, float[N, 4] z) => (float[?, 4] y) {
    xx = Concat<axis = 0>(x, x)
    xz = Sub(xx, z)
    y = Identity(xz)
}"""
DIFFERENCES = """m (float[N, 3] x, float[N, 3] mask) => (float[3, 3] y) {
    one = Constant<value = int64[1] {1}>()
    end = Constant<value = int64[1] {1000000}>()
    axis = Constant<value = int64[1] {0}>()
    later = Slice(x, one, end, axis)
    turned = Transpose(later)
    xz = MatMul(turned, mask)
    y = Identity(xz)
}"""
MODELS = {"two products": PRODUCTS, "rows of both": TWICE_AS_MANY_ROWS, "differences": DIFFERENCES}


def model(text: str, last: str = "Identity") -> ModelProto:
    return model_from_text(text.replace("y = Identity", f"y = {last}"), 17, check=False)


@pytest.mark.parametrize("level", ["quick", "full"])
@pytest.mark.parametrize("text", MODELS.values(), ids=MODELS)
def test_sizes_of_one_name_differ_where_they_must(text: str, level: str) -> None:
    found = ortscan.verify(model(text), model(text), level=level, time_limit=60)
    assert found.outcome == "equal", found.notes
    assert "inputs share names of dimensions, but the original accepts no common size for them: 'N'" in found.notes
    ran = [case.dims for case in found.cases if case.status == "equal"]
    assert any(len({size for name, size in dims.items() if name.startswith("N of ")}) == 2 for dims in ran)


@pytest.mark.parametrize("text", MODELS.values(), ids=MODELS)
def test_a_difference_is_seen_at_such_sizes(text: str) -> None:
    assert ortscan.verify(model(text), model(text, "Abs"), level="quick", time_limit=60).outcome == "different"


def test_a_name_that_can_be_kept_is_kept() -> None:
    fits = model_from_text("m (float[N, 3] x, float[N, 3] z) => (float[N, 3] y) { y = Add(x, z) }", 17)
    found = ortscan.verify(fits, fits)
    assert all(set(case.dims) == {"N"} for case in found.cases)
