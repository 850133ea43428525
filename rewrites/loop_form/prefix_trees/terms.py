"""Terms: what one row of a tensor is, as an expression over rows of the sources of a tree.

    x[0] is a leaf;    Add(x[0::2], x[1::2])[3] is the term Add(x[6], x[7])

Equal terms have equal ids. The operands of a term have smaller ids than the term.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

__all__ = ["Application", "Filler", "Invariant", "Leaf", "Term", "Terms"]


@dataclass(frozen=True)
class Leaf:
    """Row ``position`` of the source with the index ``source``."""

    source: int
    position: int


@dataclass(frozen=True)
class Filler:
    """A row whose elements all equal ``number``."""

    number: float | int | bool


@dataclass(frozen=True)
class Invariant:
    """A value from outside the tree, which is the same at all positions."""

    value: ir.Value | None


@dataclass(frozen=True)
class Application:
    """The first result of a node, for the rows ``operands``.

    Args:
        key: Equal for nodes that compute the same from equal operands.
        operands: The ids of the operands.
    """

    key: Hashable
    operands: tuple[int, ...]


Term = Leaf | Filler | Invariant | Application

_NEUTRAL = {"Add": 0, "Mul": 1, "Or": False, "And": True, "Max": -float("inf"), "Min": float("inf")}


@dataclass
class Terms:
    """All terms of one search.

    Args:
        fast_math: True if 0 times a row is 0.

    Attributes:
        terms: The terms, by id.
        ends: The lowest and the highest position among the leaves of each term, or None for a term without leaves.
    """

    fast_math: bool = False
    terms: list[Term] = field(default_factory=list)
    ends: list[tuple[int, int] | None] = field(default_factory=list)
    _ids: dict[Term, int] = field(default_factory=dict)

    def id_of(self, term: Term) -> int:
        """Return the id of ``term``."""
        number = self._ids.setdefault(term, len(self.terms))
        if number == len(self.terms):
            self.terms.append(term)
            self.ends.append(self._ends_of(term))
        return number

    def apply(self, op_type: str, key: Hashable, operands: Sequence[int]) -> int:
        """Return the id of an operator applied to ``operands``.

        If an operand is a neutral filler, such as 0 in a sum, return the id of the other operand.
        """
        neutral = _NEUTRAL.get(op_type)
        if neutral is not None and len(operands) == 2:
            for operand, other in (operands, operands[::-1]):
                term = self.terms[operand]
                if isinstance(term, Filler) and term.number == neutral:
                    return other
                if isinstance(term, Filler) and op_type == "Mul" and term.number == 0 and self.fast_math:
                    return operand
        return self.id_of(Application(key, tuple(operands)))

    def _ends_of(self, term: Term) -> tuple[int, int] | None:
        if isinstance(term, Leaf):
            return term.position, term.position
        if not isinstance(term, Application):
            return None
        known = [ends for ends in (self.ends[operand] for operand in term.operands) if ends is not None]
        return (min(low for low, _ in known), max(high for _, high in known)) if known else None
