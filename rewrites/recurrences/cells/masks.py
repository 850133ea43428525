"""Find masks: conditions that decide which rows take a step, and which rows keep their states.

    h' = Where(m, f(x, h), h)    or    m * f(x, h) + (1 - m) * h

A mask is a condition of the body that does not depend on a state. It has one element for each row. To recognise a cell with a mask,
the body is read twice: once as if all rows took the step, and once as if no row took the step.
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
    """A possible mask. A row takes the step if its element of the condition ``value`` equals ``outcome``.

    Args:
        value: The condition.
        outcome: True or False: the element of the condition in rows that take the step.
        active: The body as read for rows that take the step.
        kept: The body as read for the other rows.
        known: The body as read for the other rows, like ``kept``, but without assumed contents of run-time weights.
    """

    value: ir.Value
    outcome: bool
    active: Interpretation
    kept: Interpretation
    known: Interpretation

    def keeps(self, state: State) -> bool:
        """Return True if rows that do not take the step keep ``state``."""
        return self.kept.are_same(state.next, state.inner)

    def value_when_inactive(self, value: ir.Value) -> np.ndarray | State | None:
        """Return what ``value`` holds in rows that do not take the step, or None if this is unknown.

        Returns:
            An array if ``value`` is constant in these rows; a state if ``value`` equals the old value of this state.
        """
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
    """A recognised cell.

    Args:
        cell: The cell.
        reading: The interpretation of the body in which the cell was recognised.
        mask: The mask of the cell, or None.
        weights: The run-time weights on which the cell depends.
    """

    cell: Cell
    reading: Interpretation
    mask: Mask | None = None
    weights: tuple[ir.Value, ...] = ()

    @property
    def lead(self) -> Dims:
        """The leading axes of the hidden state."""
        return self.reading.dims[source_of(self.cell.hidden)]

    def keeps_states(self) -> bool:
        """Return True if the cell has a mask, and rows that do not take the step keep all states of the cell.

        Return False if the mask has neither one element for each row nor one element for all rows.
        """
        mask = self.mask
        return mask is not None and all(map(mask.keeps, self.cell.states)) and _is_for_rows(mask.value, self.reading, self.lead)


def masks_of(loop: ScanView, opset: int, numbers: Numbers) -> Iterator[Mask]:
    """Yield the masks that the body may have. ``numbers``: the assumed contents of captured tensors."""
    for value in _conditions(loop):
        readings = {outcome: Interpretation.of_body(loop, opset, {value: outcome}, numbers) for outcome in (True, False)}
        known = {outcome: Interpretation.of_body(loop, opset, {value: outcome}) for outcome in readings} if numbers else readings
        for outcome, active in readings.items():
            yield Mask(value, outcome, active, readings[not outcome], known[not outcome])


def _conditions(loop: ScanView) -> list[ir.Value]:
    """Return the conditions of the body that may be masks, because they do not depend on a state.

    A condition is the bool operand of a Where or Cast. If operators that keep the rank, such as Not, compute this operand from
    another bool value, return the other value instead.
    """
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
    """Return True if the condition ``value`` has one element for each row, or one element for all rows.

    ``lead`` holds the sizes of the leading axes, which index the rows. If there is one leading axis, the condition may have an
    unknown size along this axis, because the size can only be 1 or the number of rows. Several leading axes are later merged into
    one axis. A size of 1 could then not be broadcast, so all sizes of the condition must equal those in ``lead``.
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
