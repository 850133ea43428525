"""Which loop of the report a node belongs to: that it stands for, or whose steps it is one of."""

from collections.abc import Iterable

import onnx_ir as ir

from rewrites.base.report import LoopReport
from rewrites.graph.marks import REPORT, UNROLLED_FROM

__all__ = ["entry_of", "hand_on", "mark_unrolled", "unrolled_from"]


def entry_of(node: ir.Node) -> LoopReport | None:
    """Return the report of the loop that ``node`` is or stands for, where it has one."""
    entry: LoopReport | None = REPORT.of(node)
    return entry


def hand_on(old: ir.Node, new: ir.Node) -> None:
    """Let ``new`` stand for the loop that ``old`` is or stands for."""
    entry = entry_of(old)
    if entry is not None:
        REPORT.put(new, entry)


def mark_unrolled(nodes: Iterable[ir.Node], loop: ir.Node) -> None:
    """Note that ``nodes`` are the steps of ``loop``, where they are not already those of a loop inside it."""
    entry = entry_of(loop)
    if entry is not None:
        for node in nodes:
            UNROLLED_FROM.put_new(node, entry)


def unrolled_from(node: ir.Node) -> LoopReport | None:
    """Return the report of the loop whose steps ``node`` is one of, or None."""
    entry: LoopReport | None = UNROLLED_FROM.of(node)
    return entry
