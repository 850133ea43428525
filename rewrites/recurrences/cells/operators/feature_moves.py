"""Read operators that move features or only change their shape, each as one ``gather``.

Transposed features may be transposed back, split along axis 0, and concatenated along axis 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from rewrites.graph.dims import same
from rewrites.ops.element_moves import Movement, movement
from rewrites.ops.versions import DYNAMIC, ints_operand, perm_of, zero_copies_size
from rewrites.recurrences.cells.features import Dims, Features
from rewrites.recurrences.cells.reading import AbstractValue, OperatorReader, Reading, Transposed

__all__ = ["MOVEMENT"]


def _identity(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    return [reading.abstract(node.inputs[0])]


def _cast(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    """Read a Cast that does not round.

    A Cast to the type of the states is also read, because each step rounds the states to this type anyway.
    """
    source, to = node.inputs[0], ir.DataType(node.attributes.get_int("to", 0))
    if source is None or source.dtype is None or not source.dtype.is_floating_point() or not to.is_floating_point():
        return None
    kept = to == source.dtype or (to.itemsize > source.dtype.itemsize and source.dtype != ir.DataType.BFLOAT16)
    return _identity(reading, node) if kept or to == reading.dtype else None


def _moved(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    x = reading.abstract(node.inputs[0])
    if isinstance(x, Transposed):
        return _moved_transposed(reading, node, [x])
    if not isinstance(x, Features) or (move := _movement(reading, node, x)) is None:
        return None
    return [_gathered(x, move, index) for index in move.apply([_indices(x)])]


def _transpose(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    x = reading.abstract(node.inputs[0])
    swaps = isinstance(x, Transposed | Features) and list(perm_of(node, 2)) == [1, 0]
    if isinstance(x, Transposed):
        return [x.features if swaps else x]
    return _moved(reading, node) or ([Transposed(x)] if isinstance(x, Features) and x.is_matrix and swaps else None)


def _moved_transposed(reading: Reading, node: ir.Node, parts: Sequence[Transposed]) -> Sequence[AbstractValue] | None:
    """Read a node that moves transposed features along axis 0 and keeps the rows unchanged."""
    first, widths = parts[0].features, [part.features.width for part in parts]
    move = movement(node, reading.opset, (first.width, *first.dims), lambda index: None)
    if (
        move is None
        or move.axes != (0, 1)
        or not move.changed_axes <= {0}
        or any(part.features.dims != first.dims for part in parts)
    ):
        return None
    starts = np.cumsum([0, *widths])
    indices = move.apply([np.arange(width)[:, None] + start for width, start in zip(widths, starts, strict=False)])
    joined = replace(first, shape=(int(starts[-1]),), runs=tuple(run for part in parts for run in part.features.runs))
    return [Transposed(joined.gather(index[:, 0])) for index in indices]


def _movement(reading: Reading, node: ir.Node, x: Features) -> Movement | None:
    """Return how ``node`` moves the features ``x``, or None if it also moves leading axes.

    Leading axes of size 1 may be added or removed.
    """
    operands = [reading.abstract(value) for value in node.inputs]
    constants = [operand if isinstance(operand, np.ndarray) else None for operand in operands]
    move = movement(node, reading.opset, (*x.dims, *x.shape), lambda index: constants[index] if index < len(constants) else None)
    if move is None or move.axes is None or any(axis < x.lead for axis in move.changed_axes):
        return None
    leading = [axis for axis in move.axes if axis is not None and axis < x.lead]
    first = [axis for axis in move.axes if axis is not None][: len(leading)]
    return move if first == leading == sorted(leading) else None


def _indices(x: Features) -> np.ndarray:
    """Return the flat index of each feature, with an axis of size 1 for each leading axis."""
    return x.indexed().reshape((1,) * x.lead + x.shape)


def _gathered(x: Features, move: Movement, index: np.ndarray) -> Features:
    """Return the result of a node that moves the features of ``x``.

    Args:
        x: The features before the move.
        move: The movement. Axes that it adds before all feature axes become leading axes.
        index: The flat index in ``x`` of each feature of the result.
    """
    assert move.axes is not None
    lead = next((i for i, axis in enumerate(move.axes) if axis is not None and axis >= x.lead), len(move.axes))
    dims = tuple(1 if axis is None else x.dims[axis] for axis in move.axes[:lead])
    return replace(x, dims=dims).gather(index.reshape(index.shape[lead:]))


def _concat(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    parts = [reading.abstract(value) for value in node.inputs]
    transposed = [part for part in parts if isinstance(part, Transposed)]
    if transposed:
        return _moved_transposed(reading, node, transposed) if len(transposed) == len(parts) else None
    first = next((part for part in parts if isinstance(part, Features)), None)
    move = None if first is None else _movement(reading, node, first)
    if first is None or move is None:
        return None
    known = [part for part in parts if isinstance(part, Features) and part.lead == first.lead]
    dims = _common_lead(reading, known) if len(known) == len(parts) else None
    if dims is None:
        return None
    starts = np.cumsum([0, *(part.width for part in known)])
    (index,) = move.apply([_indices(part) + start for part, start in zip(known, starts, strict=False)])
    runs = [run for part in known for run in part.runs]
    return [_gathered(Features(dims, (int(starts[-1]),), tuple(runs)), move, index)]


def _common_lead(reading: Reading, parts: Sequence[Features]) -> Dims | None:
    """Return the leading axes common to all ``parts`` of a Concat, or None if they differ.

    A leading axis may have an unknown size in one part and a known size in another part. The known size is then recorded for the
    sources of the first part, too.
    """
    dims: list[int | str | None] = list(parts[0].dims)
    for part in parts[1:]:
        for i, dim in enumerate(part.dims):
            known = dims[i]
            if dim is not None and known is not None and dim != known:
                reading.learn_same(dim, known)
                return None
            dims[i] = dim if dims[i] is None else dims[i]
    for part in parts:
        if None in part.dims:
            for key in {key for run in part.runs for key in run.affine.terms if reading.dims.get(key) == part.dims}:
                reading.dims[key] = tuple(dims)
    return tuple(dims)


def _reshape(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    """Read a Reshape that does not merge leading axes with feature axes.

    It may merge and split leading axes, and it may merge and split feature axes.
    """
    x, sizes = reading.features(node.inputs[0]), ints_operand(node, 1)
    if x is None or sizes is DYNAMIC or sizes is None or (0 in sizes and not zero_copies_size(node)):
        return None
    old: list[int | str | None] = [*x.dims, *x.shape]
    dims = [(old[i] if i < len(old) else None) if size == 0 else None if size < 0 else size for i, size in enumerate(sizes)]
    for cut in sorted(range(len(dims)), key=lambda cut: (cut != x.lead, -cut)):
        tail = [dim for dim in dims[cut:] if isinstance(dim, int)]
        if len(tail) == len(dims) - cut and np.prod(tail, dtype=np.int64) == x.width:
            # the number of rows is unchanged, so if all sizes but one are equal, that one is equal too
            is_kept = cut == x.lead and sum(size != dim for size, dim in zip(dims, x.dims, strict=False)) <= 1
            return [Features(x.dims if is_kept else tuple(dims[:cut]), tuple(tail), x.runs)]
    return None


def _expand(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    """Read an Expand that is known to repeat nothing."""
    x, sizes = reading.features(node.inputs[0]), ints_operand(node, 1)
    source, result = node.inputs[0], node.outputs[0]
    if x is None or source is None:
        return None
    ones = isinstance(sizes, tuple) and all(size == 1 for size in sizes) and len(sizes) <= x.lead + len(x.shape)
    return [x] if ones or same(source.shape, result.shape) else None


MOVEMENT: Mapping[str, OperatorReader] = {
    "Cast": _cast,
    "Concat": _concat,
    "Expand": _expand,
    "Gather": _moved,
    "Identity": _identity,
    "Reshape": _reshape,
    "Slice": _moved,
    "Split": _moved,
    "Squeeze": _moved,
    "Transpose": _transpose,
    "Unsqueeze": _moved,
}
