"""Conditions on which rows keep their states: the body is read once as if all rows took the step, once as if none did.

    h' = Where(m, f(x, h), h)    or    m * f(x, h) + (1 - m) * h

A mask is a condition of the body that does not depend on a state, with one element for each row.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import varying_values
from rewrites.loops import ScanView, State
from rewrites.recurrences.cells.cell import Cell, Numbers, source_of
from rewrites.recurrences.cells.features import Dims
from rewrites.recurrences.cells.interpretation import Interpretation

__all__ = ["CellMatch", "Mask", "masks_of"]

_MOST_MASKS = 4
_KEEP_RANK = frozenset({"Cast", "Expand", "Identity", "Not", "Tile"})


@dataclass(frozen=True)
class Mask:
    """Rows take the step if the condition ``value`` is ``outcome``.

    ``active``, ``kept``: the body for rows that take the step, and for the others. ``known``: ``kept`` by constants alone, also if
    ``kept`` assumes numbers for tensors that are known only when the model runs.
    """

    value: ir.Value
    outcome: bool
    active: Interpretation
    kept: Interpretation
    known: Interpretation

    def keeps(self, state: State) -> bool:
        """Return True if rows that do not take the step keep ``state``."""
        return self.kept.are_same(state.next, state.inner)

    def otherwise(self, value: ir.Value) -> np.ndarray | State | None:
        """Return ``value`` in rows that do not take the step, if that is a number for each feature or a state."""
        whole = self.kept.whole(value)
        if whole is None:
            return None
        if whole.is_constant:
            constant = self.known.whole(value)
            return constant.affine.bias if constant is not None and constant.is_constant else None
        states = self.kept.loop.states
        return next((state for state in states if self.kept.are_same(value, state.inner)), None)


@dataclass(frozen=True)
class CellMatch:
    """A cell, the reading it was recognised in, and what else it depends on: a mask, tensors known only when the model runs."""

    cell: Cell
    reading: Interpretation
    mask: Mask | None = None
    weights: tuple[ir.Value, ...] = ()

    @property
    def lead(self) -> Dims:
        """The leading axes of the hidden state."""
        return self.reading.dims[source_of(self.cell.hidden)]

    def keeps_states(self) -> bool:
        """Return True if the mask has one element for each row, and rows that do not take the step keep all states of the cell."""
        mask = self.mask
        return mask is not None and all(map(mask.keeps, self.cell.states)) and _is_for_rows(mask.value, self.reading, self.lead)


def masks_of(loop: ScanView, opset: int, numbers: Numbers) -> Iterator[Mask]:
    """Return the masks that the body may have; ``numbers``: what captured tensors are assumed to hold."""
    for value in _conditions(loop):
        readings = {outcome: Interpretation.of_body(loop, opset, {value: outcome}, numbers) for outcome in (True, False)}
        known = {outcome: Interpretation.of_body(loop, opset, {value: outcome}) for outcome in readings} if numbers else readings
        for outcome, active in readings.items():
            yield Mask(value, outcome, active, readings[not outcome], known[not outcome])


def _conditions(loop: ScanView) -> list[ir.Value]:
    """Return the conditions that choose between values in the body, as far back as they keep their rank."""
    varying = varying_values(loop.body, [state.inner for state in loop.states])
    conditions: dict[ir.Value, None] = {}
    for node in loop.body:
        if node.op_type not in ("Where", "Cast") or node.domain != "" or node.inputs[0] is None:
            continue
        value = node.inputs[0]
        while (origin := value.producer()) is not None and origin.graph is loop.body and origin.op_type in _KEEP_RANK:
            before = origin.inputs[0]
            if before is None or before.dtype != ir.DataType.BOOL:
                break
            value = before
        is_inside = value in loop.body.inputs or (origin is not None and origin.graph is loop.body)
        if value.dtype == ir.DataType.BOOL and value not in varying and is_inside:
            conditions.setdefault(value)
    return list(conditions)[:_MOST_MASKS]


def _is_for_rows(value: ir.Value, reading: Interpretation, lead: Dims) -> bool:
    """Return True if ``value`` has one element for each row, or one for all; by broadcasting, an unknown size is either.

    Several axes of rows become one, over which a size of 1 among others would not be broadcast.
    """
    if value.shape is None:
        return False
    dims = reading.sizes(value.shape)
    if all(dim == 1 for dim in dims):
        return len(dims) <= len(lead) + 1
    if len(lead) > 1:
        return dims == [*lead, 1]
    pairs = zip(dims, lead, strict=False)
    return len(dims) == len(lead) + 1 and dims[-1] == 1 and all(dim in (1, row) or not isinstance(dim, int) for dim, row in pairs)
