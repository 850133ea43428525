"""Read gates: find the activation in a polynomial, and the weights in the activation's argument.

Works around ORT-RECURRENT-SOFTPLUS.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewrites.base.lazy import lazy
from rewrites.loops import State
from rewrites.ops.rnn.functions import Function
from rewrites.recurrences.cells.activation_forms import complement, multiple
from rewrites.recurrences.cells.cell import Cell, source_of
from rewrites.recurrences.cells.interpretation import Interpretation
from rewrites.recurrences.cells.linear_map import LinearMap
from rewrites.recurrences.cells.polynomial import Activation, Atom, Polynomial, uniform

__all__ = ["NATIVE", "Candidate", "GateWeights", "atoms_of", "gate", "one_minus", "terms_of"]

NATIVE = frozenset({"Sigmoid", "Tanh", "Relu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Elu", "Softsign"})
"""The activations of the recurrent operators that the interpretation may return.

Softplus is left out: onnxruntime's recurrent kernels compute it as log(1 + exp(x)), which overflows.
"""
_LINEAR = Function("Affine", 1.0)


def gate(polynomial: Polynomial) -> Activation | None:
    """Return one activation of the recurrent operators that equals ``polynomial``, or None.

    For example, ``1 - sigmoid(a)`` is read as ``sigmoid(-a)``, ``2 * tanh(a)`` as a ScaledTanh, and a linear map as an Affine.
    """
    if polynomial.is_affine:
        return Activation(_LINEAR, polynomial)
    product = polynomial.monomial
    atom = None if product is None else product.activation
    if product is None or atom is None or atom.name not in NATIVE:
        return None
    factor, added = uniform(product.coefficient), polynomial.affine.bias
    if not added.any():
        return _times(atom, factor)
    return one_minus(atom) if factor == -1 and (added == 1).all() else None


def one_minus(activation: Activation) -> Activation | None:
    """Return one activation that equals ``1 - activation``, or None if there is none."""
    form = complement(activation.function)
    return None if form is None else activation.rewritten(form)


def _times(atom: Activation, factor: float | None) -> Activation | None:
    form = None if factor is None else multiple(atom.function, factor)
    return None if form is None else atom.rewritten(form)


def atoms_of(polynomial: Polynomial) -> list[Atom]:
    """Return the atoms of all products of ``polynomial``."""
    return [atom for product in polynomial.products.values() for atom in product.atoms]


def terms_of(polynomial: Polynomial) -> list[tuple[Activation, Polynomial]]:
    """Return the activations, multiples of activations and linear maps in the products of ``polynomial``.

    The caller tries each of these terms as an operand in the equations of a cell. A term is a pair (activation, polynomial) of
    equal values. The activation of a linear map is an Affine.
    """
    terms: dict[Hashable, tuple[Activation, Polynomial]] = {}
    for product in polynomial.products.values():
        for atom in product.atoms:
            if isinstance(atom, LinearMap):
                alone = Polynomial(atom.scaled(product.coefficient))
                terms.setdefault(alone.key, (Activation(_LINEAR, alone), alone))
            elif atom.name in NATIVE:
                terms.setdefault(atom.key, (atom, atom.alone))
                for factor in (product.coefficient, -product.coefficient):
                    multiplied = _times(atom, uniform(factor))
                    if multiplied is not None:
                        terms.setdefault(multiplied.key, (multiplied, atom.alone * factor))
    return list(terms.values())


@dataclass(frozen=True)
class GateWeights:
    """The weights in the argument of one gate, ``x @ w.T + h @ r.T + bias``.

    ``w`` is [hidden, input width], ``r`` is [hidden, hidden], and ``bias`` is [hidden].
    """

    w: np.ndarray
    r: np.ndarray
    bias: np.ndarray


@dataclass(frozen=True)
class Candidate:
    """A state that may be the hidden state of a cell.

    Args:
        reading: The interpretation of the body.
        hidden: The state.
        next: The next value of the state.
        inputs: The keys of the scanned sources with their widths, in a fixed order.
    """

    reading: Interpretation
    hidden: State
    next: Polynomial
    inputs: tuple[tuple[Hashable, int], ...]

    @property
    def key(self) -> Hashable:
        """The key of the hidden state as a source."""
        return source_of(self.hidden)

    @property
    def size(self) -> int:
        """The number of hidden features."""
        return self.next.width

    @lazy
    def hidden_before(self) -> Polynomial:
        """The hidden state before the step, as a polynomial."""
        return Polynomial(LinearMap.source(self.key, self.size))

    def cell(self, op_type: str, gates: Sequence[GateWeights], functions: tuple[Function, ...], **others: Any) -> Cell:
        """Return a cell with the weights ``gates``, which are in the operator's order.

        ``functions``: the activations. ``others``: further fields of the cell.
        """
        w, r, bias = (np.concatenate([getattr(gate, name) for gate in gates]) for name in ("w", "r", "bias"))
        fields = {"w": w, "r": r, "wb": bias, "rb": np.zeros(len(bias)), "functions": functions, **others}
        return Cell(op_type=op_type, hidden=self.hidden, sources=self.inputs, **fields)

    def weights(self, argument: Polynomial) -> GateWeights | None:
        """Return the weights in the argument of a gate.

        Return None if the argument is not linear in the inputs and the hidden state.
        """
        return self.affine_weights(argument.affine) if argument.is_affine else None

    def affine_weights(self, affine: LinearMap) -> GateWeights | None:
        """Return the weights in ``affine``, the argument of a gate.

        Return None if ``affine`` has sources other than the inputs and the hidden state.
        """
        if not affine.terms.keys() <= {self.key, *(key for key, _ in self.inputs)}:
            return None
        parts = [affine.terms.get(key, np.zeros((width, affine.width))) for key, width in self.inputs]
        w = np.concatenate(parts, axis=0).T if parts else np.zeros((affine.width, 0))
        r = affine.terms.get(self.key)
        return GateWeights(w, np.zeros((affine.width, self.size)) if r is None else r.T, affine.bias)

    def activations(self) -> list[Activation]:
        """Return the distinct activations in the products of the next hidden state."""
        return list({atom.key: atom for atom in atoms_of(self.next) if isinstance(atom, Activation)}.values())
