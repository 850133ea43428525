"""The error of smaller weights is measured on many rows, and another seed draws other rows."""

from contextlib import ExitStack

import numpy as np

from ortscan.pipeline.weight_errors import ErrorMeter
from tests.support.text import parsed

TEXT = "g (float[N, 64] x) => (float[N, 64] y) { y = MatMul (x, w) }"
MODEL = parsed(TEXT, weights={"w": np.eye(64, dtype=np.float32)})


def feeds(seed: int) -> list[np.ndarray]:
    with ExitStack() as stack:
        return [feed["x"] for feed in ErrorMeter(MODEL, {}, None, seed, stack).feeds]


def test_a_free_batch_size_becomes_64_rows_in_three_different_sets() -> None:
    first, second, third = feeds(0)
    assert first.shape == second.shape == third.shape == (64, 64)
    assert not np.array_equal(first, second)
    assert not np.array_equal(second, third)


def test_another_seed_draws_other_inputs() -> None:
    assert not any(np.array_equal(old, new) for old in feeds(0) for new in feeds(1))
