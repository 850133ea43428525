"""Which loop of the report a node belongs to: that it stands for, or whose steps it is one of."""

from collections.abc import Iterable

import onnx_ir as ir

from rewrites.base.report import LoopReport

__all__ = ["ENTRY", "entry_of", "hand_on", "mark_written_out", "written_out_of"]

ENTRY = "ortscan.report"
"""Under which the loop nodes of a model keep their reports."""

_WRITTEN_OUT = "ortscan.written out of"


def entry_of(node: ir.Node) -> LoopReport | None:
    """Give the report of the loop that ``node`` is or stands for, where it has one."""
    entry: LoopReport | None = node.meta.get(ENTRY)
    return entry


def hand_on(old: ir.Node, new: ir.Node) -> None:
    """Let ``new`` stand for the loop that ``old`` is or stands for."""
    entry = entry_of(old)
    if entry is not None:
        new.meta[ENTRY] = entry


def mark_written_out(nodes: Iterable[ir.Node], loop: ir.Node) -> None:
    """Note that ``nodes`` are the steps of ``loop``, where they are not already those of a loop inside it."""
    entry = entry_of(loop)
    for node in nodes if entry is not None else ():
        node.meta.setdefault(_WRITTEN_OUT, entry)


def written_out_of(node: ir.Node) -> LoopReport | None:
    """Give the report of the loop whose steps ``node`` is one of, or None."""
    entry: LoopReport | None = node.meta.get(_WRITTEN_OUT)
    return entry
