"""Names the initializers that keep a loop as it is because they are listed as inputs: another value may come with each run."""

import onnx_ir as ir

from ortscan.modelio import listed_defaults
from rewrites.base.plain_text import quoted
from rewrites.base.report import Reason, Report
from rewrites.graph.marks import REPORT
from rewrites.graph.walk import node_graphs
from rewrites.loops import captured_values, loops_in

__all__ = ["note_replaceable_defaults"]

_MOST_SHOWN = 5


def note_replaceable_defaults(model: ir.Model, report: Report) -> None:
    """Give each loop that is left a reason that names the defaults it reads, where it reads any."""
    defaults = set(listed_defaults(model))
    for node in loops_in(model.graph) if defaults else ():
        read = [value for value in node.inputs if value is not None]
        for body in node_graphs(node):
            read += captured_values(body)
        entry, names = REPORT.of(node), [value.name or "" for value in dict.fromkeys(read) if value in defaults]
        if entry is not None and names:
            more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
            shown = ", ".join(map(quoted, names[:_MOST_SHOWN])) + more
            detail = f"reads {shown}, listed as inputs, whose values each run may replace"
            entry.reasons.append(Reason("freeze", "DEFAULT-INPUT", detail))
