"""Conditions on which rows keep their states: the body is read once as if all rows took the step, once as if none did.

    h' = Where(m, f(x, h), h)    or    m * f(x, h) + (1 - m) * h

A mask is a condition of the body that no state has a part in, with one element for each row.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import varying_values
from rewrites.loops import ScanView, State
from rewrites.recurrences.cells.cell import Cell, source_of
from rewrites.recurrences.cells.families import find_cells
from rewrites.recurrences.cells.interpretation import Interpretation

__all__ = ["Mask", "masked_cells"]

_MOST_MASKS = 4
_THROUGH = frozenset({"Cast", "Expand", "Identity", "Not", "Tile"})


@dataclass(frozen=True)
class Mask:
    """Rows take the step where the condition ``value`` is ``outcome``; ``taken``, ``kept``: the body there, and elsewhere.

    ``known``: the body elsewhere as far as constants tell, where numbers were put in the place of what only a run tells.
    """

    value: ir.Value
    outcome: bool
    taken: Interpretation
    kept: Interpretation
    known: Interpretation

    def keeps(self, state: State) -> bool:
        """Whether rows that do not take the step keep ``state``."""
        return self.kept.are_same(state.next, state.inner)

    def otherwise(self, value: ir.Value) -> np.ndarray | State | None:
        """Return what ``value`` is in other rows, where that is a number for each feature or a state."""
        found = self.kept.whole(value)
        if found is None:
            return None
        if found.is_constant:
            constant = self.known.whole(value)
            return constant.affine.bias if constant is not None and constant.is_constant else None
        states = self.kept.loop.states
        return next((state for state in states if self.kept.are_same(value, state.inner)), None)


def masked_cells(loop: ScanView, opset: int, numbers: Mapping[ir.Value, np.ndarray]) -> Iterator[tuple[Cell, Mask]]:
    """Return the cells that the body is in rows that take the step, where the others keep their states.

    ``numbers``: what captured tensors are taken to hold.
    """
    for value in _conditions(loop):
        readings = {outcome: Interpretation.of_body(loop, opset, {value: outcome}, numbers) for outcome in (True, False)}
        known = {outcome: Interpretation.of_body(loop, opset, {value: outcome}) for outcome in readings} if numbers else readings
        for outcome, taken in readings.items():
            mask = Mask(value, outcome, taken, readings[not outcome], known[not outcome])
            for cell in find_cells(taken):
                if all(map(mask.keeps, cell.states)) and _is_for_rows(value, taken, taken.dims[source_of(cell.hidden)]):
                    yield cell, mask


def _conditions(loop: ScanView) -> list[ir.Value]:
    """Return the conditions that choose between values in the body, as far back as they keep their rank."""
    varying = varying_values(loop.body, [state.inner for state in loop.states])
    found: dict[ir.Value, None] = {}
    for node in loop.body:
        if node.op_type not in ("Where", "Cast") or node.domain != "" or node.inputs[0] is None:
            continue
        value = node.inputs[0]
        while (origin := value.producer()) is not None and origin.graph is loop.body and origin.op_type in _THROUGH:
            before = origin.inputs[0]
            if before is None or before.dtype != ir.DataType.BOOL:
                break
            value = before
        if value.dtype == ir.DataType.BOOL and value not in varying and not _is_outside(loop, value):
            found.setdefault(value)
    return list(found)[:_MOST_MASKS]


def _is_outside(loop: ScanView, value: ir.Value) -> bool:
    node = value.producer()
    return value not in loop.body.inputs and (node is None or node.graph is not loop.body)


def _is_for_rows(value: ir.Value, reading: Interpretation, lead: tuple[int | str | None, ...]) -> bool:
    """Whether ``value`` has one element for each row, or one for all; by broadcasting, a size that is not known is either.

    Where rows have several axes, which become one, a size of 1 among others would not spread over them.
    """
    if value.shape is None:
        return False
    dims = reading.sizes(value.shape)
    if all(dim == 1 for dim in dims):
        return len(dims) <= len(lead) + 1
    if len(lead) > 1:
        return dims == [*lead, 1]
    pairs = zip(dims, lead, strict=False)
    return len(dims) == len(lead) + 1 and dims[-1] == 1 and all(one in (1, row) or not isinstance(one, int) for one, row in pairs)
