"""A gate read off a polynomial computes the polynomial; its argument comes apart into weights on inputs and hidden state."""

import numpy as np
import pytest

from rewrites.recurrences.cells.gates import NATIVE, complement, gate, scaled, split_affine
from rewrites.recurrences.cells.polynomial import Activation, Polynomial
from tests.rewrites.recurrences.cells.algebra import ACTIVATIONS, SOURCES, affine_at, at, point, random_affine

WIDTH = 3


def drawn(seed: int) -> Polynomial:
    return Polynomial(random_affine(np.random.default_rng(seed), WIDTH))


READ = {
    (1.0, 0.0): {"Elu", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Softsign", "Tanh", "ThresholdedRelu"},
    (-1.0, 1.0): {"HardSigmoid", "Sigmoid"},
    (2.0, 0.0): {"ScaledTanh"},
    (-0.5, 0.0): {"ScaledTanh"},
    (0.5, 0.5): {"HardSigmoid", "Sigmoid"},
    (2.0, -1.0): {"Tanh"},
    (1.0, 1.0): set[str](),
}


@pytest.mark.parametrize(("factor", "added"), READ)
def test_a_gate_computes_what_the_polynomial_does(factor: float, added: float) -> None:
    gates = set()
    for seed, (name, alpha, beta) in enumerate(ACTIVATIONS, start=1):
        value = (
            Polynomial.activation(name, drawn(seed), alpha, beta).scaled(factor).plus(Polynomial.constant(np.full(WIDTH, added)))
        )
        found, where = gate(value), point(np.random.default_rng(seed))
        if found is not None:
            gates.add(found.name)
            assert found.name in NATIVE | {"ScaledTanh"}
            np.testing.assert_allclose(at(found, where), at(value, where), atol=1e-12)
    assert gates == READ[factor, added]


def test_an_affine_map_alone_is_a_gate() -> None:
    found, where = gate(drawn(1)), point(np.random.default_rng(1))
    assert found is not None
    np.testing.assert_array_equal(at(found, where), at(drawn(1), where))


def test_one_minus_a_gate_is_a_gate_of_the_opposite() -> None:
    complements = set()
    for seed, (name, alpha, beta) in enumerate(ACTIVATIONS):
        for clip in (None, 0.5):
            atom = Activation(name, alpha, beta, drawn(seed), clip)
            found, where = complement(atom), point(np.random.default_rng(seed))
            if found is not None:
                complements.add((name, clip))
                np.testing.assert_allclose(at(found, where), 1 - at(atom, where), atol=1e-12)
    assert complements == {("Sigmoid", None), ("Sigmoid", 0.5), ("HardSigmoid", None), ("HardSigmoid", 0.5)}


def test_only_tanh_takes_a_factor_and_only_the_same_for_all_features() -> None:
    tanh = Activation("Tanh", 0.0, 0.0, drawn(1))
    where = point(np.random.default_rng(1))
    for factor in (3.0, -2.0):
        found = scaled(tanh, np.full(WIDTH, factor))
        assert found is not None
        np.testing.assert_allclose(at(found, where), factor * at(tanh, where))
    assert scaled(tanh, np.array([1.0, 2.0, 1.0])) is None
    assert scaled(Activation("Sigmoid", 0.0, 0.0, drawn(1)), np.full(WIDTH, 2.0)) is None


def test_an_argument_is_weights_times_its_sources() -> None:
    inputs, hidden = [(source, SOURCES[source]) for source in list(SOURCES)[:2]], list(SOURCES)[2]
    split = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        affine, where = random_affine(random, WIDTH), point(random)
        for given, state in ((inputs, hidden), ([inputs[1]], "x")):
            found = split_affine(affine, given, state)
            known = {state, *(source for source, _ in given)}
            assert (found is None) == bool(affine.terms.keys() - known)
            if found is not None:
                w, r = found
                total = np.concatenate([where[source] for source, _ in given], axis=1) @ w.T + affine.bias
                total = total + (where[state] @ r.T if r.shape[1] else 0)
                np.testing.assert_allclose(affine_at(affine, where), total, atol=1e-12)
                assert bool(r.shape[1]) == (state in affine.terms)
                split += 1
    assert split > 40
