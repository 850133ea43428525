"""Operations on polynomials of activations equal the same operations on numbers. Equal keys mean equal numbers."""

import itertools

import numpy as np
import pytest

from rewrites.ops.rnn.functions import Function
from rewrites.recurrences.cells.linear_map import LinearMap
from rewrites.recurrences.cells.polynomial import Activation, Monomial, Polynomial, TooComplex
from tests.rewrites.recurrences.cells.algebra import at, point, random_affine, random_polynomial

WIDTH = 3


def drawn(seed: int, depth: int = 3) -> tuple[Polynomial, np.ndarray, dict] | None:
    try:
        return random_polynomial(np.random.default_rng(seed), WIDTH, depth)
    except TooComplex:
        return None


def test_a_random_polynomial_equals_the_same_steps_on_numbers() -> None:
    found = [one for seed in range(600) if (one := drawn(seed)) is not None]
    assert len(found) > 500
    assert sum(bool(polynomial.products) for polynomial, _, _ in found) > 300
    for polynomial, numbers, where in found:
        np.testing.assert_allclose(at(polynomial, where), numbers, rtol=1e-9, atol=1e-9)


def test_products_are_collected_ordered_and_not_zero() -> None:
    for seed in range(300):
        one = drawn(seed)
        for key, product in one[0].products.items() if one is not None else ():
            assert key == product.key
            assert product.coefficient.any()
            assert [str(atom.key) for atom in product.atoms] == sorted(str(atom.key) for atom in product.atoms)


def test_sums_and_products_have_the_same_key_in_any_order() -> None:
    for seed in range(60):
        random = np.random.default_rng(seed)
        # eighths of small numbers add without rounding, so the order of a sum cannot show
        a, b, c = (Polynomial(random_affine(random, WIDTH)) for _ in range(3))
        t = Polynomial.activation(Function("Tanh"), a)
        assert (a + b).key == (b + a).key
        assert (a + b + t).key == (a + (t + b)).key
        assert (t * b).key == (b * t).key
        assert (t * b * c).key == (t * (b * c)).key or a.is_constant or b.is_constant or c.is_constant
        assert ((t + b) * 0.5).key == (t * 0.5 + b * 0.5).key
        assert (t - t).key == Polynomial.constant(np.zeros(WIDTH)).key


def test_equal_keys_mean_equal_numbers_everywhere() -> None:
    by_key: dict[object, list[Polynomial]] = {}
    for seed in range(1500):
        one = drawn(seed, depth=1)
        if one is not None:
            by_key.setdefault(one[0].key, []).append(one[0])
    alike = [pair for same in by_key.values() for pair in itertools.pairwise(same)]
    assert len(alike) > 50
    where = point(np.random.default_rng(0), batch=20)
    for one, other in alike:
        np.testing.assert_array_equal(at(one, where), at(other, where))


def test_the_two_ways_to_write_a_blend_are_one() -> None:
    random = np.random.default_rng(3)
    n, h = (Polynomial(random_affine(np.random.default_rng(seed), WIDTH)) for seed in (3, 9))
    z = Polynomial.activation(Function("Sigmoid"), Polynomial(random_affine(random, WIDTH)))
    first, second = n + z * (h - n), (1 - z) * n + z * h
    where = point(random)
    np.testing.assert_allclose(at(first, where), at(second, where))


@pytest.mark.parametrize("clip", [None, 0.75])
@pytest.mark.parametrize(("name", "factor", "added", "becomes"), [("Tanh", 0.5, 0.5, "Sigmoid"), ("Sigmoid", 2.0, -1.0, "Tanh")])
def test_a_stretched_activation_is_another_one(name: str, factor: float, added: float, becomes: str, clip: float | None) -> None:
    atom = Activation(Function(name, clip=clip), Polynomial(LinearMap.source("x", WIDTH)))
    found = atom.alone * factor + added
    where = point(np.random.default_rng(1))
    assert found.single is not None
    assert found.single.name == becomes
    np.testing.assert_allclose(at(found, where), at(atom, where) * factor + added)


@pytest.mark.parametrize(("low", "high"), [(-3.0, 3.0), (0.0, 6.0), (-1.0, 3.0)])
def test_a_clip_stretched_to_the_unit_is_a_hard_sigmoid(low: float, high: float) -> None:
    clip = Polynomial.activation(Function("Clip", low, high), Polynomial(LinearMap.source("x", WIDTH)) * 4.0)
    found = clip * (1 / (high - low)) + -low / (high - low)
    where = point(np.random.default_rng(1))
    assert found.single is not None
    assert found.single.name == "HardSigmoid"
    np.testing.assert_allclose(at(found, where), (at(clip, where) - low) / (high - low))


def test_polynomials_too_large_for_any_cell_are_given_up() -> None:
    tanh = Polynomial.activation(Function("Tanh"), Polynomial(LinearMap.source("x", WIDTH)))
    power = tanh
    for _ in range(4):
        power = power * tanh
    (product,) = power.products.values()
    assert isinstance(product, Monomial)
    assert len(product.atoms) == 5
    with pytest.raises(TooComplex):
        power * tanh


@pytest.mark.parametrize("factor", [1.0, -2.0, 0.25])
@pytest.mark.parametrize("name", ["Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid"])
def test_a_clip_of_the_argument_goes_into_the_activation_with_its_factor(name: str, factor: float) -> None:
    inner = Polynomial(LinearMap.source("x", WIDTH)) * 2.0
    argument = Polynomial.activation(Function("Clip", -1.5, 1.5), inner) * factor
    function = Function(name, 0.125, 0.5)
    found = Polynomial.activation(function, argument)
    where = point(np.random.default_rng(2))
    assert found.single is not None
    assert (found.single.name, found.single.function.clip) == (name, 1.5 * abs(factor))
    np.testing.assert_allclose(at(found, where), at(Activation(function, argument), where))
