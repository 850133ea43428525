"""What a family is shown: the states' next values, and which sources may feed a cell."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from rewrites.base.lazy import lazy
from rewrites.loops import State
from rewrites.recurrences.cells.cell import source_of
from rewrites.recurrences.cells.gates import NATIVE, scaled, split_affine
from rewrites.recurrences.cells.interpretation import Interpretation
from rewrites.recurrences.cells.linear_map import Affine
from rewrites.recurrences.cells.polynomial import Activation, Atom, Polynomial

__all__ = ["Candidate", "Weights", "atoms_of", "terms_of"]


@dataclass(frozen=True)
class Weights:
    """The argument of one gate: ``w`` [hidden, input width], ``r`` [hidden, hidden], ``bias`` [hidden]."""

    w: np.ndarray
    r: np.ndarray
    bias: np.ndarray

    @classmethod
    def stacked(cls, gates: Sequence["Weights"]) -> "Weights":
        """Put the weights of several gates one above the other."""
        return cls(*(np.concatenate([getattr(gate, name) for gate in gates]) for name in ("w", "r", "bias")))


@dataclass(frozen=True)
class Candidate:
    """One state, seen as the hidden state of a cell.

    ``inputs``: the scanned sources with their widths, in a fixed order.
    """

    reading: Interpretation
    hidden: State
    next: Polynomial
    inputs: tuple[tuple[Hashable, int], ...]

    @property
    def key(self) -> Hashable:
        """The source of the hidden state."""
        return source_of(self.hidden)

    @property
    def size(self) -> int:
        """The number of hidden features."""
        return self.next.width

    @lazy
    def itself(self) -> Polynomial:
        """The hidden state as it was."""
        return Polynomial(Affine.source(self.key, self.size))

    def weights(self, argument: Polynomial) -> Weights | None:
        """Read the argument of a gate; None where it is not affine in the inputs and the hidden state."""
        return self.affine_weights(argument.affine) if argument.is_affine else None

    def affine_weights(self, affine: Affine) -> Weights | None:
        """Read an affine map in the same way."""
        parts = split_affine(affine, self.inputs, self.key)
        if parts is None:
            return None
        w, r = parts
        return Weights(w, r if r.shape[1] else np.zeros((affine.width, self.size)), affine.bias)

    def activations(self) -> list[Activation]:
        """Return the activations in the products of the next value, each once."""
        return list({atom.key: atom for atom in atoms_of(self.next) if isinstance(atom, Activation)}.values())

    def terms(self) -> list[tuple[Activation, Polynomial]]:
        """Return what the next value may be made of, as ``terms_of`` does."""
        return terms_of(self.next)


def atoms_of(polynomial: Polynomial) -> list[Atom]:
    """Return the atoms of all products."""
    return [atom for product in polynomial.products.values() for atom in product.atoms]


def terms_of(polynomial: Polynomial) -> list[tuple[Activation, Polynomial]]:
    """Return what ``polynomial`` may be made of, as activations the recurrent operators have, each with what it stands for.

    These are its activations, numbers times those, and affine maps.
    """
    found: dict[Hashable, tuple[Activation, Polynomial]] = {}
    for product in polynomial.products.values():
        for atom in product.atoms:
            if isinstance(atom, Affine):
                alone = Polynomial(atom.scaled(product.coefficient))
                found.setdefault(alone.key, (Activation("Affine", 1.0, 0.0, alone), alone))
            elif atom.name in NATIVE:
                found.setdefault(atom.key, (atom, atom.alone))
                for factor in (product.coefficient, -product.coefficient):
                    stretched = scaled(atom, factor)
                    if stretched is not None and stretched is not atom:
                        found.setdefault(stretched.key, (stretched, atom.alone.scaled(factor)))
    return list(found.values())
