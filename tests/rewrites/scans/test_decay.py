"""Powers of a constant decay, and the sizes of nested blocks for decaying states."""

import numpy as np
import pytest

from rewrites.scans.decay import Decay, choose_levels, choose_radices


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("number", [0.9, 0.1, 1e-3, 1e-30, 1e-42, -0.5])
def test_factors_of_a_power_are_nonzero_and_their_product_underflows_like_the_power(dtype: type, number: float) -> None:
    decay = Decay(np.array(number), np.dtype(dtype))
    for exponent in (1, 2, 7, 300, 100_000):
        factors = decay.power(exponent)
        assert all(factor != 0 for factor in factors)
        largest = np.array(np.finfo(dtype).max)
        for factor in factors:
            largest = largest * factor
        wanted = 0.0 if abs(number) ** exponent * float(np.finfo(dtype).max) < np.finfo(dtype).tiny else None
        if wanted is None:
            np.testing.assert_allclose(largest, float(np.finfo(dtype).max) * number**exponent, rtol=1e-5)
        else:
            assert abs(largest) <= np.finfo(dtype).tiny


def test_levels_require_little_padding() -> None:
    for rows in (2, 3, 17, 1025, 16001, 100_003):
        levels = choose_levels(rows)
        assert rows <= levels.rows <= rows * 9 / 8 + 8
        assert levels.operators < 200


def test_radices_take_few_operators() -> None:
    for steps in (1, 2, 17, 1025, 16001, 100_003):
        assert choose_radices(steps).operators < 260
