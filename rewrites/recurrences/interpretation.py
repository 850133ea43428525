"""Reads a loop's body as polynomials of its sources.

A value is a constant (an array), or ``Features``, or not understood. Sources are the scan inputs and states, and products to which
a matrix is applied. Only values of floating point type are read as features.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from rewrites.loops import ScanView
from rewrites.recurrences.affine import Affine
from rewrites.recurrences.constants import Constants
from rewrites.recurrences.features import Features
from rewrites.recurrences.polynomial import Polynomial, TooComplex
from rewrites.values import rank_of

__all__ = ["Interpretation", "Meaning"]

Meaning = Features | np.ndarray | None


@dataclass
class Interpretation:
    """What the values of one Scan's body mean.

    ``inputs``: scan inputs and states by their source keys. ``derived``: the polynomials behind other sources.
    """

    loop: ScanView
    constants: Constants
    inputs: dict[Hashable, ir.Value] = field(default_factory=dict)
    derived: dict[Hashable, Features] = field(default_factory=dict)
    _known: dict[ir.Value, Meaning] = field(default_factory=dict)

    @classmethod
    def of_body(cls, loop: ScanView, opset: int) -> "Interpretation":
        """Read the whole body of ``loop``."""
        from rewrites.recurrences.operators import OPERATORS

        found = cls(loop, Constants(opset))
        for value in loop.body.inputs:
            found._known[value] = found._source(value)
        for node in loop.body:
            read = OPERATORS.get(node.op_type) if node.domain == "" else None
            try:
                meanings = None if read is None else read(found, node)
            except TooComplex:
                meanings = None
            found._known.update(zip(node.outputs, meanings or [None] * len(node.outputs), strict=True))
        return found

    @property
    def opset(self) -> int:
        """The version of the standard operator set."""
        return self.constants.opset

    def meaning(self, value: ir.Value | None) -> Meaning:
        """Give what ``value``, of the body or captured, means."""
        if value is None:
            return None
        if value in self._known:
            return self._known[value]
        return self.constants.of(value)

    def features(self, value: ir.Value | None) -> Features | None:
        """Give ``value`` as features where it varies from step to step, else None."""
        meaning = self.meaning(value)
        return meaning if isinstance(meaning, Features) else None

    def as_source(self, features: Features) -> Affine:
        """Give an affine map of ``features``, which becomes a source of its own where it is none."""
        joined = features.whole()
        if joined is not None and joined.is_affine:
            return joined.affine
        key = ("product", tuple(run.key for run in features.runs))
        self.derived[key] = features
        return Affine.source(key, features.width)

    def _source(self, value: ir.Value) -> Meaning:
        rank = rank_of(value)
        if rank is None or rank == 0 or value.dtype is None or not value.dtype.is_floating_point():
            return None
        assert value.shape is not None
        width = value.shape[-1]
        if not isinstance(width, int) or width == 0:
            return None
        key = ("input", value.name)
        self.inputs[key] = value
        return Features(rank - 1, (width,), (Polynomial(Affine.source(key, width)),))
