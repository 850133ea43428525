"""Reads Slice, Split, Transpose and Reshape."""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.ops.versions.attributes import DYNAMIC, Dynamic, axis_of, ints_operand

__all__ = ["SliceSpec", "SplitSpec", "perm_of", "slice_range", "slice_spec", "split_spec", "zero_copies_size"]

_TO_THE_END = frozenset({2**31 - 1, 2**63 - 1})
"""Values of ``end`` that onnxruntime treats as the end of the axis, for positive and for negative steps."""


@dataclass(frozen=True)
class SliceSpec:
    """The bounds of a Slice: one start, end and step for each of ``axes``.

    The axes are non-negative if the rank is known.
    """

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    axes: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True)
class SplitSpec:
    """A Split of ``axis`` into ``outputs`` parts.

    ``sizes``: the sizes of the parts. None for equal parts, of which the last may be smaller from opset 18 on.
    """

    axis: int
    sizes: tuple[int, ...] | Dynamic | None
    outputs: int

    def sizes_of(self, length: int) -> tuple[int, ...] | None:
        """Return the sizes of the parts of an axis of ``length`` elements; None if they are not constant."""
        if isinstance(self.sizes, Dynamic):
            return None
        each = -(-length // self.outputs)
        return self.sizes if self.sizes is not None else tuple(min(each, length - i * each) for i in range(self.outputs))


def slice_spec(node: ir.Node, opset: int, rank: int | None = None) -> SliceSpec | Dynamic:
    """Read a Slice; return DYNAMIC if an operand is not constant."""
    if opset < 10:
        operands = [_ints_attribute(node, name) for name in ("starts", "ends", "axes", "steps")]
    else:
        operands = [ints_operand(node, index) for index in range(1, 5)]
    known = [None if isinstance(item, Dynamic) else item for item in operands]
    starts, ends, axes, steps = known
    if starts is None or ends is None or DYNAMIC in operands:
        return DYNAMIC
    places = tuple(range(len(starts))) if axes is None else axes
    if rank is not None:
        places = tuple(axis + rank if axis < 0 else axis for axis in places)
    return SliceSpec(starts, ends, places, (1,) * len(starts) if steps is None else steps)


def slice_range(start: int, end: int, step: int, length: int) -> range:
    """Return the indices that a Slice reads along an axis of ``length`` elements.

    If ``step`` is negative and ``start`` is before the first element, the Slice starts at index 0.
    """
    if step > 0 or not length:
        return range(length)[start:end:step]
    first = min(max(start + length if start < 0 else start, 0), length - 1)
    stop = -1 if end in _TO_THE_END else min(max(end + length if end < 0 else end, -1), length)
    return range(first, stop, step)


def split_spec(node: ir.Node, opset: int, rank: int | None = None) -> SplitSpec:
    """Read a Split. ``axis`` is non-negative if ``rank`` is known."""
    sizes = _ints_attribute(node, "split") if opset < 13 else ints_operand(node, 1)
    return SplitSpec(axis_of(node, 0, rank), sizes, len(node.outputs))


def perm_of(node: ir.Node, rank: int) -> tuple[int, ...]:
    """Return the permutation of a Transpose of a value with ``rank`` axes. The default reverses the axes."""
    perm = node.attributes.get_ints("perm")
    return tuple(reversed(range(rank))) if perm is None else tuple(perm)


def zero_copies_size(node: ir.Node) -> bool:
    """Return True if a 0 in the shape of this Reshape copies the size of its input.

    Return False if the Reshape has ``allowzero``. Then a 0 is a size of 0.
    """
    return node.attributes.get_int("allowzero", 0) == 0


def _ints_attribute(node: ir.Node, name: str) -> tuple[int, ...] | Dynamic | None:
    ints = node.attributes.get_ints(name)
    return None if ints is None else tuple(ints)
