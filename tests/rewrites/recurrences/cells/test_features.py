"""Operations on features equal numpy's operations on the numbers of the features."""

from collections.abc import Callable

import numpy as np
import pytest

from rewrites.ops.rnn.functions import Function
from rewrites.recurrences.cells.features import Features
from rewrites.recurrences.cells.polynomial import Polynomial
from tests.rewrites.recurrences.cells.algebra import at, features_at, point, random_affine

Move = Callable[[np.ndarray], np.ndarray]

MOVES: dict[str, Move] = {
    "part": lambda f: f[1:, :3],
    "backwards": lambda f: f[::-1, ::-1],
    "every second": lambda f: f[:, ::2],
    "reshaped": lambda f: f.reshape(2, 3, 4),
    "flat": lambda f: f.reshape(-1),
    "transposed": lambda f: f.T,
    "gathered twice": lambda f: f[[0, 2, 2, 1]],
    "split and swapped": lambda f: np.concatenate([f[:, 3:], f[:, :3]], axis=1),
    "one": lambda f: f[2, 5],
    "none": lambda f: f[:, :0],
}


def drawn(random: np.random.Generator, shape: tuple[int, ...], lead: int = 1) -> Features:
    """Features in runs of random widths, activations among them."""
    left, runs = int(np.prod(shape)), []
    while left:
        width = int(random.integers(1, left + 1))
        run = Polynomial(random_affine(random, width))
        runs.append(Polynomial.activation(Function("Tanh"), run) if random.random() < 0.5 else run)
        left -= width
    return Features(("B",) * lead, shape, tuple(runs))


@pytest.mark.parametrize("name", MOVES)
def test_movement_of_features_is_movement_of_numbers(name: str) -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        features, where = drawn(random, (3, 8)), point(random)
        numbers = features_at(features, where)
        found = features.gather(MOVES[name](features.indexed()))
        wanted = np.stack([MOVES[name](row) for row in numbers])
        assert found.shape == wanted.shape[1:]
        assert sum(run.width for run in found.runs) == found.width
        if found.width:
            np.testing.assert_array_equal(features_at(found, where), wanted)


def test_a_run_that_is_taken_whole_is_unchanged() -> None:
    features = drawn(np.random.default_rng(1), (24,))
    assert features.gather(features.indexed()).runs == features.runs


def test_runs_of_two_are_cut_where_either_is() -> None:
    for seed in range(50):
        random = np.random.default_rng(seed)
        one, other, where = drawn(random, (3, 4)), drawn(random, (3, 4), lead=2), point(random)
        found = one.combined(other, Polynomial.__add__)
        assert (found.lead, found.shape) == (2, (3, 4))
        np.testing.assert_allclose(features_at(found, where), features_at(one, where) + features_at(other, where), atol=1e-12)


def test_a_whole_part_is_one_polynomial_or_none() -> None:
    kinds = set()
    for seed in range(60):
        random = np.random.default_rng(seed)
        features, where = drawn(random, (8,)), point(random)
        begin, end = sorted(random.choice(9, 2, replace=False).tolist())
        found, numbers = features.whole(begin, end), features_at(features, where)[:, begin:end]
        part = features.gather(np.arange(begin, end))
        assert (found is None) == (len(part.runs) > 1 and not all(run.is_affine for run in part.runs))
        kinds.add(found is None)
        if found is not None:
            np.testing.assert_array_equal(at(found, where), numbers)
    assert kinds == {True, False}


def test_no_features_are_no_polynomial() -> None:
    features = drawn(np.random.default_rng(0), (3, 8))
    assert features.gather(np.arange(0)).whole() is None
    assert features.whole(2, 2) is None
