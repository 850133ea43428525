"""Reads a loop's body as polynomials of its sources.

A scanned tensor that is an affine map of another one, such as an input projection done before the loop, is read through to that.
Only values of floating point type are read as features.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import rank_of
from rewrites.loops import ScanInput, ScanView, State
from rewrites.recurrences.cells.cell import source_of
from rewrites.recurrences.cells.features import Features
from rewrites.recurrences.cells.linear_map import Affine
from rewrites.recurrences.cells.operators import OPERATORS, read_choice, read_flipped
from rewrites.recurrences.cells.polynomial import Polynomial, TooComplex
from rewrites.recurrences.cells.reading import Meaning, Reading
from rewrites.recurrences.constants import Constants

__all__ = ["Interpretation", "Scanned"]

_DEEPEST = 8
_WIDEST = 2048
"""Wider sources are not read: the matrices of the reading take the square of that."""


@dataclass(frozen=True)
class Scanned:
    """A source that is scanned: ``outer`` [steps, ..., width], from the end where ``reverse``."""

    outer: ir.Value
    reverse: bool
    width: int


@dataclass
class Interpretation(Reading):
    """What the values of one Scan's body mean; ``scanned``: the scanned sources."""

    scanned: dict[Hashable, Scanned] = field(default_factory=dict)

    @classmethod
    def of_body(
        cls,
        loop: ScanView,
        opset: int,
        assumed: Mapping[ir.Value, bool] | None = None,
        numbers: Mapping[ir.Value, np.ndarray] | None = None,
    ) -> "Interpretation":
        """Read the whole body of ``loop``, whose scanned axes are 0.

        ``assumed``: conditions taken to be true or false. ``numbers``: what captured tensors are taken to hold.
        """
        constants, same = Constants(opset, numbers), dict[str, int | str]()
        while True:
            found = cls(loop, constants, same=dict(same))
            found._read_body(assumed or {})
            if found.same == same:
                return found
            same = found.same

    def _read_body(self, assumed: Mapping[ir.Value, bool]) -> None:
        for state in self.loop.states:
            self._known[state.inner] = self._state(state)
        for scan in self.loop.scan_inputs:
            self._known[scan.inner] = self._slices(scan)
        for value, outcome in assumed.items():
            self._assume(value, outcome)
        for node in self.loop.body:
            self._read(node, self._known)
            for value in node.outputs:
                if value in assumed:
                    self._assume(value, assumed[value])

    def _assume(self, value: ir.Value, outcome: bool) -> None:
        self._known[value] = np.full((1,) * (rank_of(value) or 0), outcome)
        self.decided.add(value)

    def _read(self, node: ir.Node, known: dict[ir.Value, Meaning]) -> None:
        read = OPERATORS.get(node.op_type, read_choice) if node.domain == "" else None
        try:
            meanings = None if read is None else read_choice(self, node) or read(self, node) or read_flipped(self, node)
        except TooComplex:
            meanings = None
        known.update(zip(node.outputs, meanings or [None] * len(node.outputs), strict=True))

    @property
    def inputs(self) -> list[tuple[Hashable, Scanned]]:
        """The scanned sources that the body's scan inputs are made of."""
        found = [self.features(scan.inner) for scan in self.loop.scan_inputs]
        used = {key for features in found if features is not None for run in features.runs for key in run.affine.terms}
        return [(key, scanned) for key, scanned in self.scanned.items() if key in used]

    def _state(self, state: State) -> Features | None:
        value = state.inner
        shape, after = value.shape, state.next.shape
        if shape is not None and after is not None and len(shape) == len(after) > 0 and isinstance(after[-1], int):
            value = ir.Value(name=value.name, type=value.type, shape=ir.Shape([*shape.dims[:-1], after[-1]]))
        return self._source(source_of(state), value, 0)

    def _source(self, key: Hashable, value: ir.Value, skipped: int) -> Features | None:
        """Make ``value`` a source; its first ``skipped`` axes are no axes of one step."""
        rank = rank_of(value)
        if rank is None or rank <= skipped or value.dtype is None or not value.dtype.is_floating_point():
            return None
        assert value.shape is not None
        *lead, width = self.sizes(value.shape)
        if not isinstance(width, int) or not 0 < width <= _WIDEST:
            return None
        self.dims[key] = tuple(lead[skipped:])
        return Features(tuple(lead), (width,), (Polynomial(Affine.source(key, width)),))

    def _slices(self, scan: ScanInput) -> Features | None:
        whole = self._outside(scan.outer, scan, 0)
        if whole is None or rank_of(scan.inner) is None:
            return None
        return Features(whole.dims[1:], whole.shape, whole.runs)

    def _outside(self, value: ir.Value, scan: ScanInput, depth: int) -> Features | None:
        """Read a scanned tensor, the steps as one more leading axis."""
        node = value.producer()
        if node is not None and depth < _DEEPEST and node.graph is self.loop.node.graph:
            inside: dict[ir.Value, Features] = {}
            for operand in node.inputs:
                if operand is not None and operand not in self._known and self.constants.of(operand) is None:
                    features = self._outside(operand, scan, depth + 1)
                    if features is None:
                        break
                    inside[operand] = features
            else:
                self._known.update(inside)
                self._read(node, self._known)
                for operand in inside:
                    del self._known[operand]
                results = {output: self._known.pop(output) for output in node.outputs}
                found = results[value]
                if isinstance(found, Features) and self._is_affine_here(found, scan):
                    return found
        key = ("scanned", value.name, scan.reverse)
        features = self._source(key, value, 1)
        if features is not None:
            self.scanned[key] = Scanned(value, scan.reverse, features.width)
        return features

    def _is_affine_here(self, features: Features, scan: ScanInput) -> bool:
        """Whether it is an affine map of sources with the leading axes that the steps have."""
        whole = features.whole()
        if whole is None or not whole.is_affine or scan.inner.shape is None or features.lead != len(scan.inner.shape):
            return False
        lead = self.sizes(scan.inner.shape)[:-1]
        return all(list(self.dims.get(key, ())) == lead and None not in lead for key in whole.affine.terms)
