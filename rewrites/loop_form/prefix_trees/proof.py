"""Proves that rows of a tensor are the prefixes of an operator.

    y = [x0, x0 + x1, (x0 + x1) + x2, (x0 + x1) + (x2 + x3), ...]    ->    y[t] combines x0 to xt, by  s * x = s + x

The first row that combines two neighbours defines the operator. A term covers the steps from i to k if it is the operator applied
to two terms that cover the steps from i to j and from j + 1 to k. If the operator is associative, all terms that cover the same
steps are equal. So row t is a prefix if its term covers the steps from 0 to t.

A state may have several parts, such as the pairs (a, b) of ``b' = a_t * b + b_t``. Each part is read from a source of its own, and
has its own template: the term of this part in terms of all parts of two neighbours.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rewrites.loop_form.prefix_trees.terms import Application, Leaf, Terms

__all__ = ["Operand", "Proof", "Template"]


@dataclass(frozen=True)
class Operand:
    """The part of the source ``source`` of the earlier operand of the operator, or of the later one."""

    source: int
    is_later: bool


@dataclass(frozen=True)
class Template:
    """One part of the operator's result.

    It is the term ``term``, whose leaves are at the positions ``first`` and ``first + 1``.
    """

    term: int
    first: int

    def bind(self, other: int, terms: Terms) -> dict[Operand, int] | None:
        """Return the operands to which the operator is applied in the term ``other``.

        Return None if ``other`` is another operator.
        """
        operands: dict[Operand, int] = {}
        bound: dict[int, int] = {}
        pending = [(self.term, other)]
        while pending:
            mine, theirs = pending.pop()
            if bound.setdefault(mine, theirs) != theirs:
                return None
            term, match = terms.terms[mine], terms.terms[theirs]
            if isinstance(term, Leaf):
                operands[Operand(term.source, term.position > self.first)] = theirs
            elif not isinstance(term, Application):
                if mine != theirs:
                    return None
            elif not isinstance(match, Application) or match.key != term.key or len(match.operands) != len(term.operands):
                return None
            else:
                pending += zip(term.operands, match.operands, strict=True)
        return operands


@dataclass
class Proof:
    """The templates of the operator, by their sources, and the steps that terms cover.

    ``spans`` maps pairs of a source and a term to the first and the last step that the term covers as this part.
    """

    terms: Terms
    templates: dict[int, Template] = field(default_factory=dict)
    spans: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def parts(self, source: int) -> list[int]:
        """Return the sources of all parts that the prefixes of ``source`` need."""
        parts = [source]
        for part in parts:
            template = self.templates.get(part)
            operands = () if template is None else template.bind(template.term, self.terms) or ()
            parts += dict.fromkeys(operand.source for operand in operands if operand.source not in parts)
        return parts

    def covers(self, source: int, rows: Sequence[int], backwards: bool) -> bool:
        """Return True if ``rows`` are the prefixes of ``source``.

        If ``backwards``, the prefixes start at the last row.
        """
        last = len(rows) - 1
        first_leaf, second = (rows[-1], rows[-2]) if backwards else (rows[0], rows[1])
        if self.terms.terms[first_leaf] != Leaf(source, last if backwards else 0):
            return False
        start = last - 1 if backwards else 0
        if self.terms.ends[second] != (start, start + 1):
            return False
        proof = Proof(self.terms, {source: Template(second, start), **self.templates}, dict(self.spans))
        if not proof._cover((source, row) for row in rows):
            return False
        if any(proof.spans.get((source, row)) != ((t, last) if backwards else (0, t)) for t, row in enumerate(rows)):
            return False
        self.templates, self.spans = proof.templates, proof.spans
        return True

    def _cover(self, goals: Iterable[tuple[int, int]]) -> bool:
        """Compute the spans of ``goals``, pairs of a source and a term.

        Return False if one of them has no span.
        """
        operands = self._operands_of_all(goals)
        for source, term in sorted(operands, key=lambda goal: goal[1]):
            leaf, bound = self.terms.terms[term], operands[source, term]
            if bound is None:
                if not isinstance(leaf, Leaf) or leaf.source != source:
                    return False
                self.spans[source, term] = (leaf.position, leaf.position)
                continue
            span = self._joined(bound)
            if span is None:
                return False
            self.spans[source, term] = span
        return True

    def _joined(self, bound: Mapping[Operand, int]) -> tuple[int, int] | None:
        """Return the steps that the operator's result covers.

        Return None if the operands cover no neighbouring steps.
        """
        sides = [
            {self.spans.get((part.source, term)) for part, term in bound.items() if part.is_later == late} for late in (False, True)
        ]
        if any(len(side) != 1 for side in sides):
            return None
        (earlier,), (later,) = sides
        if earlier is None or later is None:
            return None
        return (earlier[0], later[1]) if earlier[1] + 1 == later[0] else None

    def _operands_of_all(self, goals: Iterable[tuple[int, int]]) -> dict[tuple[int, int], dict[Operand, int] | None]:
        """Return the operands of all terms that ``goals`` need.

        The operands of a leaf, and of an unknown term, are None. A part that has no template yet gets one: a needed term of
        this part that combines two neighbours.
        """
        operands: dict[tuple[int, int], dict[Operand, int] | None] = {}
        pending, waiting = list(goals), dict[int, list[int]]()
        while pending:
            source, term = pending.pop()
            if (source, term) in operands:
                continue
            template = self.templates.get(source)
            is_leaf = isinstance(self.terms.terms[term], Leaf)
            if template is None and not is_leaf:
                ends = self.terms.ends[term]
                waiting.setdefault(source, []).append(term)
                if ends is None or ends[1] != ends[0] + 1:
                    continue
                self.templates[source] = template = Template(term, ends[0])
                pending += ((source, other) for other in waiting.pop(source) if other != term)
            bound = None if is_leaf or template is None else template.bind(term, self.terms)
            operands[source, term] = bound
            pending += ((part.source, operand) for part, operand in (bound or {}).items())
        operands.update({(source, term): None for source, others in waiting.items() for term in others})
        return operands
