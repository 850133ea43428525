"""Operations on LinearMaps return LinearMaps that equal numpy's results at any point."""

import numpy as np

from rewrites.recurrences.cells.linear_map import LinearMap, digest, joined
from tests.rewrites.recurrences.cells.algebra import SOURCES, affine_at, point, random_affine

WIDTH = 4


def test_every_operation_is_the_same_operation_on_numbers() -> None:
    for seed in range(200):
        random = np.random.default_rng(seed)
        one, other, where = random_affine(random, WIDTH), random_affine(random, WIDTH), point(random)
        a, b = affine_at(one, where), affine_at(other, where)
        index, matrix = random.integers(0, WIDTH, 6), random.integers(-1, 2, (WIDTH, 2)) / 2
        factor = random.integers(-1, 2, WIDTH).astype(np.float64)
        results = {
            "plus": (one.plus(other), a + b),
            "scaled": (one.scaled(factor), a * factor),
            "taken": (one.gather(index), a[:, index]),
            "times": (one.times(matrix), a @ matrix),
            "scaled and times": (one.scaled(factor).times(matrix), a * factor @ matrix),
            "joined": (joined([one, other, one.gather(index)]), np.concatenate([a, b, a[:, index]], axis=1)),
        }
        for name, (found, wanted) in results.items():
            np.testing.assert_allclose(affine_at(found, where), wanted, atol=1e-12, err_msg=name)
            assert all(name == "joined" or matrix.any() for matrix in found.terms.values())
            assert found.is_constant == (not found.terms)


def test_a_source_is_itself_and_nothing_else() -> None:
    where = point(np.random.default_rng(0))
    for source, width in SOURCES.items():
        np.testing.assert_array_equal(affine_at(LinearMap.source(source, width), where), where[source])


def test_features_that_are_picked_and_scaled_are_multiplied_as_they_are() -> None:
    random = np.random.default_rng(0)
    where = point(random)
    for source, width in SOURCES.items():
        index, factor = random.permutation(width)[: width // 2 + 1], random.integers(0, 3, width // 2 + 1).astype(np.float64)
        matrix = random.standard_normal((len(index), 5))
        found = LinearMap.source(source, width).gather(index).scaled(factor).times(matrix)
        np.testing.assert_allclose(affine_at(found, where), where[source][:, index] * factor @ matrix, atol=1e-12)


def test_a_map_minus_itself_is_zero_and_keys_tell_maps_apart() -> None:
    for seed in range(50):
        random = np.random.default_rng(seed)
        one, other = random_affine(random, 2), random_affine(random, 2)
        assert one.plus(one.scaled(np.full(2, -1.0))).is_zero
        where = point(random, batch=30)
        assert (one.key == other.key) == np.array_equal(affine_at(one, where), affine_at(other, where))


def test_a_digest_tells_where_one_part_ends_and_the_next_begins() -> None:
    assert digest("ab", "c") != digest("a", "bc") != digest("abc")
    assert digest(b"ab") == digest("ab")
