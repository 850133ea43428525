"""Sizes that are computed from other sizes, and sizes that the model compares."""

import pytest

from ortscan.verification import verify
from ortscan.verification.inputs.axis import derived_dims, derived_size, largest_compared_size
from tests.support.text import model_from_text


@pytest.mark.parametrize(
    ("names", "derived"),
    [
        (["T", "2*T"], {"2*T"}),
        (["s0", "s1", "s0 + s1 - 1"], {"s0 + s1 - 1"}),
        (["L", "(L - 1)//2"], {"(L - 1)//2"}),
        (["2*T"], set()),
        (["batch-size"], set()),
        (["x[0]", "unk__1", "a.b", "1", "f(T)", "T", "T/2", "T//T", "T//0", ""], set()),
    ],
)
def test_arithmetic_over_other_dimensions_is_known(names, derived):
    assert derived_dims(names) == derived


def test_derived_sizes_are_computed():
    assert derived_size("(L - 1)//2", {"L": 7}) == 3
    assert derived_size("L - 9", {"L": 7}) == 0


BEFORE = model_from_text("g (float[T, 2] x) => (float[T, 2] y) { y = Neg (x) }", 18)


FROM_200_ON = """g (float[T, 2] x) => (float[T, 2] y) <int64[1] most = {199}, float two = {2}> {
    n = Shape <start = 0, end = 1> (x)  many = Less (most, n)
    y = If (many) <then_branch = a () => (float[N, 2] p) { q = Mul (x, two)  p = Neg (q) },
        else_branch = b () => (float[N, 2] p) { p = Neg (x) }> }"""


@pytest.mark.parametrize("level", ["quick", "full"])
def test_what_is_wrong_from_a_size_on_is_found(level: str) -> None:
    verification = verify(BEFORE, model_from_text(FROM_200_ON, 18), level=level)
    assert not verification.ok
    assert verification.first_difference is not None


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (FROM_200_ON, 199),
        (FROM_200_ON.replace("n = Shape <start = 0, end = 1> (x)", "s = Shape (x)  n = Gather (s, most)"), 199),
        (FROM_200_ON.replace("199", "3"), 0),
        (FROM_200_ON.replace("199", "100000"), 0),
        (FROM_200_ON.replace("n = Shape <start = 0, end = 1> (x)", "n = Size (x)"), 0),
        ("g (int64[1] n) => (bool[1] y) <int64[1] most = {199}> { y = Less (most, n) }", 0),
    ],
)
def test_only_sizes_of_one_axis_that_are_neither_small_nor_huge_count(text: str, asked: int) -> None:
    assert largest_compared_size(model_from_text(text, 18)) == asked
