"""Where the results of two directions come together: neighbours in a Concat, moved there in the same way.

Concat <axis = 2> (Squeeze <axes = [1]> (Y1), Squeeze <axes = [1]> (Y2))
"""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.ops.versions import DYNAMIC, axes_of, axis_of, perm_of

__all__ = ["Meeting", "arrivals", "meetings"]


@dataclass(frozen=True)
class Meeting:
    """``node`` joins the first result as operand ``place`` with the second, next to it, along ``axis``.

    ``axes``: which axes of the results are left there, in their order.
    """

    node: ir.Node
    place: int
    axes: tuple[int, ...]
    axis: int


def meetings(one: ir.Value, other: ir.Value, opset: int) -> list[Meeting]:
    """Return where ``one`` and ``other`` meet along the axis of directions or, after that is gone, along the last."""
    if one.shape is None or other.shape is None or len(one.shape) != len(other.shape):
        return []
    rank, found = len(one.shape), list[Meeting]()
    theirs = {(node, place): axes for node, place, axes in arrivals(other, opset)}
    for node, place, axes in arrivals(one, opset):
        if theirs.get((node, place + 1)) != axes:
            continue
        axis = axis_of(node, 0, len(axes))
        direction = rank - 3
        if axes[axis] == direction or (axes[axis] == rank - 1 and direction not in axes):
            found.append(Meeting(node, place, axes, axis))
    return found


def arrivals(value: ir.Value, opset: int) -> list[tuple[ir.Node, int, tuple[int, ...]]]:
    """Return the Concats that ``value`` comes to through operators that only move axes."""
    found, waiting = list[tuple[ir.Node, int, tuple[int, ...]]](), [(value, tuple(range(len(value.shape or ()))))]
    while waiting:
        one, axes = waiting.pop()
        for node, place in one.uses():
            if node.domain != "":
                continue
            if node.op_type == "Concat":
                found.append((node, place, axes))
            elif place == 0 and node.op_type == "Identity":
                waiting.append((node.outputs[0], axes))
            elif place == 0 and node.op_type == "Transpose":
                waiting.append((node.outputs[0], tuple(axes[i] for i in perm_of(node, len(axes)))))
            elif place == 0 and node.op_type == "Squeeze":
                gone = axes_of(node, opset, len(axes))
                if gone is not None and gone is not DYNAMIC:
                    waiting.append((node.outputs[0], tuple(axis for i, axis in enumerate(axes) if i not in gone)))
    return found
