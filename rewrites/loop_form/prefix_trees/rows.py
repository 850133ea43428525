"""Computes the rows of tensors as terms, node by node.

    a = Slice(x, [0], [-1], [0], [2]); b = Slice(x, [1], [6], [0], [2]); y = Add(a, b)    ->    y = [x0 + x1, x2 + x3, x4 + x5]

``TreeRows.ids`` has the rank of the tensor. Along the axes ``positions`` it has the sizes of the tensor, along others 1.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.value_numbering import attribute_key
from rewrites.graph.values import const_array, const_scalar, rank_of, shape_dims, static_dims
from rewrites.graph.walk import node_graphs
from rewrites.loop_form.prefix_trees.terms import Filler, Invariant, Leaf, Terms
from rewrites.ops.element_moves import movement
from rewrites.ops.traits import operators
from rewrites.ops.versions import ints_operand
from rewrites.ops.versions.attributes import Dynamic

__all__ = ["Emission", "RowReader", "TreeRows"]

_PADS_ARE_INPUT = 11
_MOST_TERMS = 1 << 20


@dataclass(frozen=True)
class TreeRows:
    """The rows of one tensor.

    Args:
        ids: The ids of the terms.
        positions: The axes of the tensor along which the rows lie.
        is_source: True if the tensor is a source of the tree.
    """

    ids: np.ndarray
    positions: tuple[int, ...]
    is_source: bool = False

    @property
    def from_right(self) -> tuple[int, ...]:
        """Return the axes ``positions``, counted from the last axis, which is 1."""
        return tuple(self.ids.ndim - axis for axis in self.positions)


@dataclass(frozen=True)
class Emission:
    """How a body computes the terms with one key: a copy of ``node``.

    ``from_right``: the axes of the node's operands along which rows lie, counted from the last axis. A row lacks these axes.
    """

    node: ir.Node
    from_right: tuple[int, ...]


class RowReader:
    """Reads the nodes of a graph in topological order.

    Args:
        opset: The opset of the graph.
        fast_math: True if 0 times a row is 0.

    Attributes:
        terms: All terms.
        sources: The tensors whose rows are leaves.
        rows: The rows of each tensor that depends on a source, as far as they are known.
        emissions: The nodes that compute terms, by the keys of the terms.
        applied: The nodes that compute. The other nodes that were read only move rows.
    """

    def __init__(self, opset: int, fast_math: bool) -> None:
        self.terms, self.sources, self._opset = Terms(fast_math), list[ir.Value](), opset
        self.rows: dict[ir.Value, TreeRows] = {}
        self.emissions: dict[Hashable, Emission] = {}
        self.applied: set[ir.Node] = set()
        self._constants: dict[Hashable, ir.Value | None] = {}

    def add_source(self, value: ir.Value, axis: int, size: int) -> None:
        """Add ``value`` as a source whose rows lie along ``axis``, which has ``size`` elements."""
        ids = np.array([self.terms.id_of(Leaf(len(self.sources), position)) for position in range(size)])
        shape = [size if i == axis else 1 for i in range(rank_of(value) or 0)]
        self.rows[value] = TreeRows(ids.reshape(shape), (axis,), is_source=True)
        self.sources.append(value)

    def read(self, node: ir.Node) -> bool:
        """Add the rows of the results of ``node``. Return False if they are unknown."""
        operands = [None if value is None else self.rows.get(value) for value in node.inputs]
        known = [operand for operand in operands if operand is not None]
        if not known or node.domain != "" or any(True for _ in node_graphs(node)) or len(self.terms.terms) > _MOST_TERMS:
            return False
        results = self._padded(node) if node.op_type == "Pad" else self._moved(node, operands)
        if results is None and all(operand.is_source for operand in known):
            return False
        results = results or self._applied(node, operands)
        for value, rows in zip(node.outputs, results or (), strict=False):
            self.rows[value] = rows
        return results is not None

    def _moved(self, node: ir.Node, operands: Sequence[TreeRows | None]) -> list[TreeRows] | None:
        """Return the rows of the results of ``node`` if it only moves rows, else None."""
        first, moved = operands[0], operands if node.op_type == "Concat" else operands[:1]
        if first is None and node.op_type != "Concat":
            return None
        like = next(operand for operand in operands if operand is not None)
        shape = None if node.inputs[0] is None else node.inputs[0].shape
        dims = [] if shape is None else shape_dims(shape)
        if node.op_type == "Reshape":
            return self._reshaped(node, like)
        moves = movement(node, self._opset, dims, lambda index: const_array(node.inputs[index]))
        if moves is None or moves.axes is None or not moves.changed_axes <= set(like.positions):
            return None
        if [axis for axis in moves.axes if axis is not None and axis not in like.positions] != [
            axis for axis in range(like.ids.ndim) if axis not in like.positions
        ]:
            return None
        arrays = [
            self._filler(value, like) if operand is None else operand.ids if operand.positions == like.positions else None
            for operand, value in zip(moved, node.inputs, strict=False)
        ]
        if any(array is None or array.ndim != like.ids.ndim for array in arrays):
            return None
        if like.is_source and all(
            array.size == like.ids.size for array in moves.apply([array for array in arrays if array is not None])
        ):
            return None
        positions = tuple(i for i, axis in enumerate(moves.axes) if axis is None or axis in like.positions)
        return [TreeRows(ids, positions) for ids in moves.apply([array for array in arrays if array is not None])]

    def _filler(self, value: ir.Value | None, like: TreeRows) -> np.ndarray | None:
        """Return the rows of a constant whose elements are all equal; None for other values.

        The rows lie along the axes ``like.positions``.
        """
        array = const_array(value)
        if array is None or array.ndim != like.ids.ndim or not array.size or (array != array.flat[0]).any():
            return None
        shape = [size if axis in like.positions else 1 for axis, size in enumerate(array.shape)]
        return np.full(shape, self.terms.id_of(Filler(array.flat[0].item())))

    def _padded(self, node: ir.Node) -> list[TreeRows] | None:
        """Return the rows of a Pad by a constant number along the axes of the rows, else None."""
        rows = self.rows.get(node.inputs[0]) if node.inputs[0] is not None else None
        mode = node.attributes.get_string("mode", "constant")
        if rows is None or mode != "constant":
            return None
        rank = rows.ids.ndim
        pads: Sequence[int] | Dynamic | None
        number: float | None
        if self._opset < _PADS_ARE_INPUT:
            pads, number = node.attributes.get_ints("pads"), node.attributes.get_float("value", 0.0)
        else:
            pads = ints_operand(node, 1)
            value = node.inputs[2] if len(node.inputs) > 2 else None
            number = 0 if value is None else const_scalar(value)
        axes = ints_operand(node, 3) if len(node.inputs) > 3 and node.inputs[3] is not None else tuple(range(rank))
        if not isinstance(pads, Sequence) or not isinstance(axes, Sequence) or number is None or len(pads) != 2 * len(axes):
            return None
        ids, filler = rows.ids, self.terms.id_of(Filler(number))
        for i, axis in enumerate(axis % rank for axis in axes):
            before, after = pads[i], pads[i + len(axes)]
            if not before and not after:
                continue
            if axis not in rows.positions:
                return None
            size = ids.shape[axis]
            ids = np.take(ids, range(max(0, -before), max(0, size + min(0, after))), axis)
            widths = [(max(0, before), max(0, after)) if i == axis else (0, 0) for i in range(rank)]
            ids = np.pad(ids, widths, constant_values=filler)
        return [TreeRows(ids, rows.positions)]

    def _reshaped(self, node: ir.Node, rows: TreeRows) -> list[TreeRows] | None:
        """Return the rows of a Reshape that keeps the axes of a row, and merges or splits the other axes."""
        before, after = None if node.inputs[0] is None else static_dims(node.inputs[0]), static_dims(node.outputs[0])
        if before is None or after is None or 0 in before or math.prod(before) != math.prod(after):
            return None
        shape, positions = list(after), list[int]()
        for old, new in _axis_groups(before, after):
            inner = [axis for axis in old if axis not in rows.positions]
            kept = [axis for axis in new if inner and after[axis] == before[inner[0]]][:1]
            if inner and (len(inner) > 1 or not kept or math.prod(before[axis] for axis in old) != before[inner[0]]):
                return None
            shape = [1 if axis in kept else size for axis, size in enumerate(shape)]
            positions += [axis for axis in new if axis not in kept]
        return [TreeRows(rows.ids.reshape(shape), tuple(positions))]

    def _applied(self, node: ir.Node, operands: Sequence[TreeRows | None]) -> list[TreeRows] | None:
        """Return the rows of a node that computes each row from rows at one position, else None."""
        known = [operand for operand in operands if operand is not None]
        axes = known[0].from_right
        is_product = node.op_type == "MatMul" and min(axes) > 2
        if node.op_type not in _ELEMENTWISE and not is_product:
            return None
        if any(operand.from_right != axes or operand.ids.ndim != known[0].ids.ndim for operand in known):
            return None
        if (node.op_type == "Div" and not _is_float(node)) or len(node.outputs) != 1:
            return None
        outer = [value for value, operand in zip(node.inputs, operands, strict=True) if operand is None and value is not None]
        if not all(_is_invariant(value, axes, known[0].ids.ndim) for value in outer):
            return None
        arrays = [
            np.array(self.terms.id_of(Invariant(self._shared(value)))) if operand is None else operand.ids
            for value, operand in zip(node.inputs, operands, strict=True)
        ]
        attributes = tuple(sorted((name, attribute_key(value)) for name, value in node.attributes.items()))
        key = (node.op_type, attributes, axes if any(rank_of(value) for value in outer) else ())
        stacked = np.broadcast_arrays(*arrays)
        columns = zip(*(array.reshape(-1).tolist() for array in stacked), strict=True)
        ids = np.array([self.terms.apply(node.op_type, key, column) for column in columns])
        self.emissions.setdefault(key, Emission(node, axes))
        self.applied.add(node)
        return [TreeRows(ids.reshape(stacked[0].shape), known[0].positions)]

    def _shared(self, value: ir.Value | None) -> ir.Value | None:
        """Return ``value``, or an equal constant that another node reads."""
        array = const_array(value)
        return value if array is None else self._constants.setdefault((array.dtype.str, array.shape, array.tobytes()), value)


def _axis_groups(before: Sequence[int], after: Sequence[int]) -> Iterator[tuple[range, range]]:
    """Yield the smallest groups of axes of two shapes that have equal numbers of elements."""
    i = j = 0
    while i < len(before) or j < len(after):
        first, second = i, j
        i, j = min(i + 1, len(before)), min(j + 1, len(after))
        while (size := math.prod(before[first:i])) != (other := math.prod(after[second:j])):
            i, j = i + (size < other), j + (size > other)
        yield range(first, i), range(second, j)


def _is_invariant(value: ir.Value, from_right: Sequence[int], rank: int) -> bool:
    """Return True if ``value`` is the same for all rows of a tensor with ``rank`` axes.

    ``from_right``: see ``Emission``.
    """
    dims = None if value.shape is None else shape_dims(value.shape)
    return dims is not None and len(dims) <= rank and all(axis > len(dims) or dims[-axis] == 1 for axis in from_right)


def _is_float(node: ir.Node) -> bool:
    return all(value is None or (value.dtype is not None and value.dtype.is_floating_point()) for value in node.inputs)


_ELEMENTWISE = operators("elementwise")
