"""Shapes that the caller passes fix sizes."""

import pytest

from ortscan.verification import verify
from rewrites.base.errors import OptionError
from tests.ortscan.verification.inputs.equal_cases import model, ok


@pytest.mark.parametrize("size", [2**63 - 1, 2**70, 10**12])
def test_shapes_too_large_to_make_up_are_an_error(size):
    relu = model("g (float[N, 100] x) => (float[N, 100] y) { y = Relu(x) }")
    with pytest.raises(OptionError, match=f"input 'x' would have the shape {size}, 100, too large to generate"):
        verify(relu, relu, shapes={"x": [size, 100]})


def test_shapes_fix_sizes_and_what_shares_their_symbols():
    cases = ok("g (float[T, B] x, float[B] y) => (float[T, B] z) { z = Add(x, y) }", shapes={"x": [None, 5]})
    assert {case.dims["B"] for case in cases} == {5}
    assert {case.dims["T"] for case in cases} >= {1, 2, 3, 7}


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"z": [1]}, "shapes has 'z', but the model's inputs are 'x', 'y'"),
        ({"x": [1, 2, 3]}, "rank 3"),
        ({"y": [3, 5]}, "size 3, but the model declares 2"),
        ({"x": [1, 2], "y": [2, 3]}, "'B' the sizes 2 and 3"),
    ],
)
def test_shapes_that_do_not_fit_are_an_error(shapes, message):
    proto = model("g (float[T, B] x, float[2, B] y) => (float[T, B] z) { z = Relu(x) }")
    with pytest.raises(OptionError, match=message):
        verify(proto, proto, shapes=shapes)
