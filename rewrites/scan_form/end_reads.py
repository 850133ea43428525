"""Who reads a stack at one end only: ``Y[-1]``, ``Y[-1:]``, ``Y[T - 1]``, ``Y[0]``, also through Transpose and Identity."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.builder import ConstantPool
from rewrites.graph.values import const_array, rank_of
from rewrites.ops.versions import SliceSpec, axis_of, perm_of, slice_spec

__all__ = ["EndReads", "end_reads"]

_LARGE = 2**31 - 1


@dataclass
class EndReads:
    """The reads of one stack: all ``at_start`` of its axis, or all at its end.

    ``between``: what is made of the stack on the way to the reads, each with the place of the axis. ``repairs``: what to change in
    the users before the axis is one element long.
    """

    at_start: bool | None = None
    between: list[tuple[ir.Value, int]] = field(default_factory=list)
    repairs: list[Callable[[ConstantPool], None]] = field(default_factory=list)


def end_reads(stack: ir.Value, axis: int, length: int | None, opset: int) -> EndReads | None:
    """Return how ``stack`` is read along ``axis``, of ``length`` where that is known; None where not at one end only."""
    found = EndReads()
    waiting = [(stack, axis)]
    while waiting:
        value, place = waiting.pop()
        if value.is_graph_output() or not value.uses():
            return None
        for node, index in value.uses():
            if index != 0 or node.domain != "":
                return None
            moved = _moved(node, value, place)
            if moved is not None:
                found.between.append((node.outputs[0], moved))
                waiting.append((node.outputs[0], moved))
                continue
            at_start = _read(node, value, place, length, opset, found)
            if at_start is None or found.at_start not in (None, at_start):
                return None
            found.at_start = at_start
    return found


def _moved(node: ir.Node, value: ir.Value, axis: int) -> int | None:
    """Return the place of ``axis`` in the result of a node that only moves axes."""
    if node.op_type == "Identity":
        return axis
    rank = rank_of(value)
    if node.op_type == "Transpose" and rank is not None:
        return list(perm_of(node, rank)).index(axis)
    return None


def _read(node: ir.Node, value: ir.Value, axis: int, length: int | None, opset: int, found: EndReads) -> bool | None:
    """Say whether ``node`` reads the first element of ``axis`` only (True) or the last (False)."""
    rank = rank_of(value)
    if rank is None:
        return None
    if node.op_type == "Gather" and axis_of(node, 0, rank) == axis:
        index = const_array(node.inputs[1])
        if index is None or index.size != 1:
            return None
        number = int(index.reshape(-1)[0])
        if number not in (0, -1) and number + 1 == length:
            zero = np.zeros_like(index)
            found.repairs.append(lambda constants: node.replace_input_with(1, constants.value(zero)))
            return False
        return {0: True, -1: False}.get(number)
    if node.op_type != "Slice":
        return None
    spec = slice_spec(node, opset, rank)
    if not isinstance(spec, SliceSpec) or axis not in spec.axes:
        return None
    which = spec.axes.index(axis)
    start, end = spec.starts[which], spec.ends[which]
    if spec.steps[which] != 1:
        return None
    if (start, end) == (0, 1):
        return True
    if start == -1 and (end >= _LARGE or (length is not None and end >= length)):
        return False
    if opset < since.SLICE_INPUTS or length is None or start != length - 1 or end < length:
        return None
    starts, ends = const_array(node.inputs[1]), const_array(node.inputs[2])
    if starts is None or ends is None:
        return None
    starts, ends = starts.copy(), ends.copy()
    starts[which], ends[which] = -1, np.iinfo(ends.dtype).max

    def repair(constants: ConstantPool) -> None:
        node.replace_input_with(1, constants.value(starts))
        node.replace_input_with(2, constants.value(ends))

    found.repairs.append(repair)
    return False
