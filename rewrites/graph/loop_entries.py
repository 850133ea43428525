"""Which loop of the report a node belongs to: that it stands for, or whose steps it is one of."""

from collections.abc import Iterable

import onnx_ir as ir

from rewrites.base.report import LoopReport
from rewrites.graph.marks import REPORT, UNROLLED_FROM

__all__ = ["hand_on", "mark_unrolled", "unrolled_from"]


def hand_on(old: ir.Node, new: ir.Node) -> None:
    """Let ``new`` stand for the loop that ``old`` is or stands for."""
    entry = REPORT.of(old)
    if entry is not None:
        REPORT.put(new, entry)


def mark_unrolled(nodes: Iterable[ir.Node], loop: ir.Node) -> None:
    """Note that ``nodes`` are the steps of ``loop``, where they are not already those of a loop inside it."""
    entry = REPORT.of(loop)
    if entry is not None:
        for node in nodes:
            UNROLLED_FROM.put_new(node, entry)


def unrolled_from(node: ir.Node) -> LoopReport | None:
    """Return the report of the loop whose steps ``node`` is one of, or None."""
    return UNROLLED_FROM.of(node)
