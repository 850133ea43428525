"""Finds rows of tensors that are read one by one at constant indices.

Such reads are ``Gather(x, 3)``, ``Slice(x, 3, 4)`` and the outputs of a ``Split``.

If the number of rows is unknown, only reads that fail on a missing row are supported: a Gather, or a Slice of one row that is then
squeezed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import onnx_ir as ir

from rewrites.graph.values import const_array, dim_of, rank_of
from rewrites.ops.versions import slice_range, slice_spec, split_spec
from rewrites.ops.versions.attributes import Dynamic, axes_of, axis_of

__all__ = ["RowFamily", "Rows", "WrittenRow", "rows_in", "rows_of"]


@dataclass(frozen=True)
class RowFamily:
    """All rows of ``source`` along ``axis``.

    ``width``: the size of ``axis`` in one row; None if the rows lack this axis.
    """

    source: ir.Value
    axis: int
    width: int | None


@dataclass(frozen=True)
class Rows:
    """Consecutive rows of ``family``, from row ``first`` on; towards row 0 if ``backwards``."""

    family: RowFamily
    first: int
    backwards: bool


@dataclass(frozen=True)
class WrittenRow:
    """Row ``index`` of a family."""

    family: RowFamily
    index: int


def rows_in(nodes: Iterable[ir.Node], opset: int) -> dict[ir.Value, WrittenRow]:
    """Map each result of ``nodes`` that is a row of a tensor to this row."""
    rows: dict[ir.Value, WrittenRow] = {}
    for node in nodes:
        if node.domain != "" or node.op_type not in _READERS or not node.inputs or node.inputs[0] is None:
            continue
        rank = rank_of(node.inputs[0])
        if rank:
            rows.update(_READERS[node.op_type](node, node.inputs[0], rank, opset))
    return rows


def rows_of(values: Sequence[ir.Value], rows: Mapping[ir.Value, WrittenRow]) -> Rows | None:
    """Return ``values`` as Rows if they are consecutive rows of one tensor, forwards or backwards.

    Otherwise, return None. ``rows``: the known rows of tensors.
    """
    known = [row for row in map(rows.get, values) if row is not None]
    if len(known) < len(values) or len({row.family for row in known}) > 1:
        return None
    if (known[0].family.width or 0) > 1 and not _can_be_split(known[0].family.source):
        return None
    ways = {after.index - before.index for before, after in pairwise(known)}
    return Rows(known[0].family, known[0].index, ways == {-1}) if ways in ({1}, {-1}) else None


def _can_be_split(source: ir.Value) -> bool:
    """Return True if a Reshape can split an axis of ``source``.

    At most one size may be unknown, and no size may be 0.
    """
    dims = [] if source.shape is None else list(source.shape.dims)
    return sum(not isinstance(dim, int) for dim in dims) <= 1 and 0 not in dims


def _gather_rows(node: ir.Node, source: ir.Value, rank: int, opset: int) -> dict[ir.Value, WrittenRow]:
    """Map the result of the Gather ``node`` to the row of ``source`` that it reads, if it reads one row."""
    indices, axis = const_array(node.inputs[1]), axis_of(node, 0, rank)
    if indices is None or indices.size != 1 or indices.ndim > 1:
        return {}
    index, length = int(indices.reshape(-1)[0]), dim_of(source, axis)
    if index < 0 if not isinstance(length, int) else not -length <= index < length:
        return {}
    number = index % length if isinstance(length, int) else index
    return {node.outputs[0]: WrittenRow(RowFamily(source, axis, 1 if indices.ndim else None), number)}


def _slice_rows(node: ir.Node, source: ir.Value, rank: int, opset: int) -> dict[ir.Value, WrittenRow]:
    """Map the result of the Slice ``node`` to the row of ``source`` that it reads, if it reads one row."""
    spec = slice_spec(node, opset, rank)
    if isinstance(spec, Dynamic) or len(spec.axes) != 1 or spec.steps[0] != 1:
        return {}
    (axis,), (start,), (end,) = spec.axes, spec.starts, spec.ends
    length = dim_of(source, axis)
    if not isinstance(length, int) and start >= 0 and end == start + 1 and _is_squeezed(node.outputs[0], axis, rank, opset):
        return {node.outputs[0]: WrittenRow(RowFamily(source, axis, 1), start)}
    read = slice_range(start, end, 1, length) if isinstance(length, int) else range(0)
    if not read or read[0] % len(read):
        return {}
    return {node.outputs[0]: WrittenRow(RowFamily(source, axis, len(read)), read[0] // len(read))}


def _is_squeezed(row: ir.Value, axis: int, rank: int, opset: int) -> bool:
    """Return True if all users of ``row`` squeeze ``axis``, so that they fail if its size is not 1."""
    if row.is_graph_output() or not row.uses():
        return False
    for node, _ in row.uses():
        axes = axes_of(node, opset, rank) if node.op_type == "Squeeze" and node.domain == "" else None
        if axes is None or isinstance(axes, Dynamic) or axis not in axes:
            return False
    return True


def _split_rows(node: ir.Node, source: ir.Value, rank: int, opset: int) -> dict[ir.Value, WrittenRow]:
    """Map the results of the Split ``node`` to rows of ``source``, if all have the same size."""
    spec = split_spec(node, opset, rank)
    length = dim_of(source, spec.axis)
    sizes = spec.sizes_of(length) if isinstance(length, int) else None
    if sizes is None or len(set(sizes)) > 1 or len(sizes) != len(node.outputs) or not sizes[0]:
        return {}
    family = RowFamily(source, spec.axis, sizes[0])
    return {value: WrittenRow(family, index) for index, value in enumerate(node.outputs)}


_READERS = {"Gather": _gather_rows, "Slice": _slice_rows, "Split": _split_rows}
