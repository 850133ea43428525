"""Rows of tensors that are read by constant numbers, one by one: ``Gather(x, 3)``, ``Slice(x, 3, 4)``, an output of a ``Split``."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import onnx_ir as ir

from rewrites.graph.values import const_array, dim_of, rank_of
from rewrites.ops.versions import slice_range, slice_spec, split_spec
from rewrites.ops.versions.axes import Dynamic, axis_of

__all__ = ["Family", "Row", "Rows", "rows_in", "rows_of"]


@dataclass(frozen=True)
class Family:
    """All rows of ``source`` along ``axis``; ``width``: the size of that axis in each, None where they lack it."""

    source: ir.Value
    axis: int
    width: int | None


@dataclass(frozen=True)
class Rows:
    """Rows ``first``, ``first + 1``, ... of a family, or ``first``, ``first - 1``, ... where ``falling``."""

    family: Family
    first: int
    falling: bool


@dataclass(frozen=True)
class Row:
    """Row ``index`` of a family."""

    family: Family
    index: int


def rows_in(nodes: Iterable[ir.Node], opset: int) -> dict[ir.Value, Row]:
    """Return the results of ``nodes`` that are rows."""
    found: dict[ir.Value, Row] = {}
    for node in nodes:
        if node.domain != "" or node.op_type not in _READERS or not node.inputs or node.inputs[0] is None:
            continue
        rank = rank_of(node.inputs[0])
        if rank:
            found.update(_READERS[node.op_type](node, node.inputs[0], rank, opset))
    return found


def rows_of(values: Sequence[ir.Value], rows: Mapping[ir.Value, Row]) -> Rows | None:
    """Say which rows of one tensor ``values`` are; None where they are not one behind the other."""
    places = [row for row in map(rows.get, values) if row is not None]
    if len(places) < len(values) or len({row.family for row in places}) > 1:
        return None
    if (places[0].family.width or 0) > 1 and not _can_be_parted(places[0].family.source):
        return None
    indices = [row.index for row in places]
    ways = {after - before for before, after in pairwise(indices)}
    return Rows(places[0].family, indices[0], ways == {-1}) if ways in ({1}, {-1}) else None


def _can_be_parted(source: ir.Value) -> bool:
    """Whether a Reshape can give an axis of ``source`` another one: of its sizes one at most is open, and none is 0."""
    dims = [] if source.shape is None else list(source.shape.dims)
    return sum(not isinstance(dim, int) for dim in dims) <= 1 and 0 not in dims


def _gathered(node: ir.Node, source: ir.Value, rank: int, opset: int) -> dict[ir.Value, Row]:
    indices, axis = const_array(node.inputs[1]), axis_of(node, 0, rank)
    if indices is None or indices.size != 1 or indices.ndim > 1:
        return {}
    index, length = int(indices.reshape(-1)[0]), dim_of(source, axis)
    if not isinstance(length, int) or not -length <= index < length:
        return {}
    return {node.outputs[0]: Row(Family(source, axis, 1 if indices.ndim else None), index % length)}


def _sliced(node: ir.Node, source: ir.Value, rank: int, opset: int) -> dict[ir.Value, Row]:
    spec = slice_spec(node, opset, rank)
    if isinstance(spec, Dynamic) or len(spec.axes) != 1 or spec.steps[0] != 1:
        return {}
    (axis,), (start,), (end,) = spec.axes, spec.starts, spec.ends
    length = dim_of(source, axis)
    taken = slice_range(start, end, 1, length) if isinstance(length, int) else range(0)
    if not taken or taken[0] % len(taken):
        return {}
    return {node.outputs[0]: Row(Family(source, axis, len(taken)), taken[0] // len(taken))}


def _split(node: ir.Node, source: ir.Value, rank: int, opset: int) -> dict[ir.Value, Row]:
    spec = split_spec(node, opset, rank)
    length = dim_of(source, spec.axis)
    sizes = spec.sizes_of(length) if isinstance(length, int) else None
    if sizes is None or len(set(sizes)) > 1 or len(sizes) != len(node.outputs) or not sizes[0]:
        return {}
    family = Family(source, spec.axis, sizes[0])
    return {value: Row(family, index) for index, value in enumerate(node.outputs)}


_READERS = {"Gather": _gathered, "Slice": _sliced, "Split": _split}
