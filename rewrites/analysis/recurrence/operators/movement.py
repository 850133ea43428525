"""What moves features about, or only changes how they are shaped: each is one ``taken``."""

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from rewrites.analysis.recurrence.features import Features
from rewrites.analysis.recurrence.reading import Meaning, Reading
from rewrites.analysis.shapes.dims import same
from rewrites.ops.versions import DYNAMIC, axes_of, axis_of, ints_operand, perm_of, slice_spec, split_spec

__all__ = ["MOVEMENT"]

_END = 2**31 - 1
"""What exporters write for the end of an axis, at least."""

_Read = Callable[[Reading, ir.Node], Sequence[Meaning] | None]


def _identity(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    return [reading.meaning(node.inputs[0])]


def _cast(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    """Keep what loses nothing, or no more than the states, which are rounded in each step, do."""
    source, to = node.inputs[0], ir.DataType(node.attributes.get_int("to", 0))
    if source is None or source.dtype is None or not source.dtype.is_floating_point() or not to.is_floating_point():
        return None
    kept = to == source.dtype or (to.itemsize > source.dtype.itemsize and source.dtype != ir.DataType.BFLOAT16)
    return _identity(reading, node) if kept or to == reading.kind else None


def _axis(features: Features, axis: int) -> int | None:
    """Return the place among the feature axes of an axis, or None for a leading one."""
    rank = features.lead + len(features.shape)
    place = (axis + rank if axis < 0 else axis) - features.lead
    return place if place >= 0 else None


def _split(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    x = reading.features(node.inputs[0])
    if x is None:
        return None
    spec = split_spec(node, reading.opset, x.lead + len(x.shape))
    axis = _axis(x, spec.axis)
    sizes = None if axis is None else spec.sizes_of(x.shape[axis])
    if axis is None or sizes is None:
        return None
    ends = np.cumsum(sizes)
    return [x.taken(part) for part in np.split(x.indexed(), ends[:-1], axis=axis)]


def _slice(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    x = reading.features(node.inputs[0])
    if x is None:
        return None
    spec = slice_spec(node, reading.opset, x.lead + len(x.shape))
    if spec is DYNAMIC:
        return None
    index = x.indexed()
    for start, end, place, step in zip(spec.starts, spec.ends, spec.axes, spec.steps, strict=True):
        axis = _axis(x, place)
        if axis is None and _is_whole(x.dims[place], start, end, step):
            continue
        if axis is None or step < 1:
            return None
        index = index[(slice(None),) * axis + (slice(*slice(start, end, step).indices(index.shape[axis])),)]
    return [x.taken(index)]


def _is_whole(dim: int | str | None, start: int, end: int, step: int) -> bool:
    return step == 1 and start == 0 and end >= (dim if isinstance(dim, int) else _END)


def _gather(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    x, places = reading.features(node.inputs[0]), reading.meaning(node.inputs[1])
    axis = None if x is None else _axis(x, axis_of(node, 0))
    if x is None or axis is None or not isinstance(places, np.ndarray):
        return None
    return [x.taken(np.take(x.indexed(), places, axis=axis))]


def _concat(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    parts = [reading.meaning(value) for value in node.inputs]
    first = next((part for part in parts if isinstance(part, Features)), None)
    if first is None:
        return None
    axis = _axis(first, axis_of(node, 0))
    known = [part for part in parts if isinstance(part, Features) and part.lead == first.lead]
    if axis is None or len(known) != len(parts):
        return None
    dims = _settled(reading, known)
    if dims is None:
        return None
    starts = np.cumsum([0, *(part.width for part in known)])
    index = np.concatenate([part.indexed() + start for part, start in zip(known, starts, strict=False)], axis=axis)
    runs = [run for part in known for run in part.runs]
    return [Features(dims, (int(starts[-1]),), tuple(runs)).taken(index)]


def _settled(reading: Reading, parts: Sequence[Features]) -> tuple[int | str | None, ...] | None:
    """Return the leading axes that all ``parts`` of a Concat must have, and note them for sources of which they were not known."""
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


def _unsqueeze(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    x = reading.features(node.inputs[0])
    axes = axes_of(node, reading.opset, None)
    if x is None or axes is DYNAMIC or axes is None:
        return None
    rank = x.lead + len(x.shape) + len(axes)
    marks = ["new" if i in {axis % rank for axis in axes} else "old" for i in range(rank)]
    dims: list[int | str | None] = []
    waiting = list(x.dims)
    for mark in marks:
        if mark == "old" and not waiting:
            break
        dims.append(waiting.pop(0) if mark == "old" else 1)
    old = iter(x.shape)
    shape = tuple(1 if mark == "new" else next(old) for mark in marks[len(dims) :])
    return [Features(tuple(dims), shape, x.runs)]


def _squeeze(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    x = reading.features(node.inputs[0])
    if x is None:
        return None
    rank = x.lead + len(x.shape)
    axes = axes_of(node, reading.opset, rank)
    if axes is DYNAMIC or (axes is None and not all(isinstance(dim, int) for dim in x.dims)):
        return None
    gone = {i for i, dim in enumerate((*x.dims, *x.shape)) if dim == 1} if axes is None else {axis % rank for axis in axes}
    shape = tuple(size for i, size in enumerate(x.shape) if i + x.lead not in gone)
    dims = tuple(dim for i, dim in enumerate(x.dims) if i not in gone)
    return [Features(dims, shape, x.runs)] if shape else None


def _reshape(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    """The leading axes stay, or are split and merged among themselves; the features are cut anew."""
    x, sizes = reading.features(node.inputs[0]), ints_operand(node, 1)
    if x is None or sizes is DYNAMIC or sizes is None or node.attributes.get_int("allowzero", 0) != 0:
        return None
    old: list[int | str | None] = [*x.dims, *x.shape]
    dims = [(old[i] if i < len(old) else None) if size == 0 else None if size < 0 else size for i, size in enumerate(sizes)]
    for cut in sorted(range(len(dims)), key=lambda cut: (cut != x.lead, -cut)):
        tail = [dim for dim in dims[cut:] if isinstance(dim, int)]
        if len(tail) == len(dims) - cut and np.prod(tail, dtype=np.int64) == x.width:
            kept = x.dims if cut == x.lead and _may_be(dims[:cut], x.dims) else tuple(dims[:cut])
            return [Features(kept, tuple(tail), x.runs)]
    return None


def _may_be(found: Sequence[int | str | None], dims: Sequence[int | str | None]) -> bool:
    """Whether ``found``, of which at most one is not known, holds as many rows as ``dims`` only if it is ``dims``."""
    return sum(one != other for one, other in zip(found, dims, strict=True)) <= 1


def _transpose(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    x = reading.features(node.inputs[0])
    if x is None:
        return None
    perm = perm_of(node, x.lead + len(x.shape))
    if list(perm[: x.lead]) != list(range(x.lead)):
        return None
    return [x.taken(np.transpose(x.indexed(), [axis - x.lead for axis in perm[x.lead :]]))]


def _expand(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    """Read one that spreads nothing; two sizes that are not known may differ."""
    x, sizes = reading.features(node.inputs[0]), ints_operand(node, 1)
    source, result = node.inputs[0], node.outputs[0]
    if x is None or source is None:
        return None
    ones = isinstance(sizes, tuple) and all(size == 1 for size in sizes) and len(sizes) <= x.lead + len(x.shape)
    return [x] if ones or same(source, result) else None


MOVEMENT: dict[str, _Read] = {
    "Cast": _cast,
    "Concat": _concat,
    "Expand": _expand,
    "Gather": _gather,
    "Identity": _identity,
    "Reshape": _reshape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
