"""A gate computes the same as its polynomial. Its argument is split into weights of the inputs and of the hidden state."""

import numpy as np
import onnx_ir as ir
import pytest

from rewrites.loops import State
from rewrites.ops.rnn.functions import Function
from rewrites.recurrences.cells.gates import NATIVE, Candidate, gate
from rewrites.recurrences.cells.interpretation import Interpretation
from rewrites.recurrences.cells.linear_map import LinearMap
from rewrites.recurrences.cells.polynomial import Polynomial
from tests.rewrites.recurrences.cells.algebra import ACTIVATIONS, SOURCES, affine_at, at, point, random_affine
from tests.rewrites.recurrences.cells.random_bodies import random_body
from tests.rewrites.recurrences.cells.test_interpretation import scan_of

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
    for seed, function in enumerate(ACTIVATIONS, start=1):
        value = Polynomial.activation(function, drawn(seed)) * factor + added
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


def test_only_a_factor_that_all_features_have_is_taken_into_a_gate() -> None:
    assert gate(Polynomial.activation(Function("Tanh"), drawn(1)) * np.array([1.0, 2.0, 1.0])) is None


def test_an_argument_is_weights_times_its_sources() -> None:
    inputs, hidden = [(source, SOURCES[source]) for source in ("x", ("scanned", "z", False))], ir.Value(name="h")
    state = State(hidden, hidden, hidden, None)
    loop, ctx = scan_of(random_body(0), "B")
    reading, read = Interpretation.of_body(loop, ctx.opset), 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        affine, where = random_affine(random, WIDTH), point(random)
        for sources in (inputs, inputs[1:]):
            candidate = Candidate(reading, state, Polynomial(LinearMap.source("x", 2)), tuple(sources))
            weights = candidate.affine_weights(affine)
            assert (weights is None) == bool(affine.terms.keys() - {candidate.key, *(source for source, _ in sources)})
            if weights is not None:
                x = np.concatenate([where[source] for source, _ in sources], axis=1)
                total = x @ weights.w.T + where[candidate.key] @ weights.r.T + weights.bias
                np.testing.assert_allclose(affine_at(affine, where), total, atol=1e-12)
                read += 1
    assert read > 40
