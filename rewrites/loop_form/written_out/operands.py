"""What the nodes of a pack read, over all steps: one value, rows, a constant of each, or what this step or the last one made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.graph.values import const_array
from rewrites.loop_form.written_out.packs import Column, Packs
from rewrites.loop_form.written_out.rows import Row, Rows, rows_of

__all__ = ["Before", "Constants", "Operand", "Same", "Shared", "operand_of", "same_sizes"]

_CONSTANT_BYTES = 1 << 20


@dataclass(frozen=True)
class Shared:
    """The same value in every step, from outside; None for an input that is left out."""

    value: ir.Value | None


@dataclass(frozen=True)
class Constants:
    """A constant of each step."""

    values: tuple[ir.Value, ...]


@dataclass(frozen=True)
class Same:
    """What the same step has in ``column``."""

    column: Column


@dataclass(frozen=True)
class Before:
    """What the step before has in ``column``, ``initial`` in the first; ``falling``: the steps run from the last to the first."""

    column: Column
    initial: ir.Value
    falling: bool


Operand = Shared | Rows | Constants | Same | Before


def operand_of(values: Sequence[ir.Value | None], found: Packs, rows: Mapping[ir.Value, Row]) -> Operand | None:
    """Say what ``values``, one for each step, are; None where they are nothing that a loop could read."""
    given = [value for value in values if value is not None]
    if not given:
        return Shared(None)
    if len(given) < len(values):
        return None
    if len(set(given)) == 1:
        return Shared(given[0]) if _is_outside(given[0], found) else None
    return _of_steps(given, found) or rows_of(given, rows) or _of_constants(given)


def same_sizes(values: Sequence[ir.Value]) -> bool:
    """Whether ``values`` are tensors of one element type and one shape, all sizes of which have a number or a name."""
    first = values[0]
    if not isinstance(first.type, ir.TensorType) or first.shape is None or any(_unnamed(dim) for dim in first.shape.dims):
        return False
    return all(value.dtype == first.dtype and value.shape == first.shape for value in values[1:])


def _unnamed(dim: object) -> bool:
    return isinstance(dim, ir.SymbolicDim) and dim.value is None


def _of_steps(values: Sequence[ir.Value], found: Packs) -> Operand | None:
    for column in {place[0] for place in map(found.places.get, (values[0], values[1])) if place is not None}:
        if tuple(values) == column.values and column.pack is not None:
            return Same(column)
        if tuple(values[1:]) == column.values[:-1] and _is_outside(values[0], found):
            return Before(column, values[0], falling=False)
        if tuple(values[:-1]) == column.values[1:] and _is_outside(values[-1], found):
            return Before(column, values[-1], falling=True)
    return None


def _is_outside(value: ir.Value, found: Packs) -> bool:
    place = found.places.get(value)
    return place is None or place[0].pack is None


def _of_constants(values: Sequence[ir.Value]) -> Shared | Constants | None:
    arrays = [const_array(value, limit=_CONSTANT_BYTES) for value in values]
    known = [array for array in arrays if array is not None]
    if len(known) < len(values) or len({(array.dtype, array.shape) for array in known}) > 1 or known[0].dtype.kind not in "biuf":
        return None
    if len({array.tobytes() for array in known}) == 1:
        return Shared(values[0])
    return Constants(tuple(values))
