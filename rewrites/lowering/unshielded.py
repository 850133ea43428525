"""Puts a model's own recurrent nodes under an If where a Scan is gone that failed before they ran.

    Scan (x), GRU (x, W, R)    ->    If (x has steps and rows) then GRU (x, W, R) else an empty sequence

onnxruntime refuses a Scan without steps, and then runs nothing else; a GRU or LSTM without any would have ended the process. Which
of the two it runs first nothing tells.
"""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.context import Context
from rewrites.lowering import guard_recurrence
from rewrites.lowering.lower import Fire, lower_nodes
from rewrites.lowering.recurrent_node import is_recurrent
from rewrites.normal_form.dead_code import unread_nodes
from rewrites.report import NodeReport

__all__ = ["Shielded"]


@dataclass(frozen=True)
class Shielded:
    """The ``scans`` and recurrent ``nodes`` that a model holds, in bodies and branches too."""

    scans: frozenset[ir.Node]
    nodes: frozenset[ir.Node]

    @classmethod
    def of(cls, graph: ir.Graph) -> "Shielded":
        """Look for them."""
        nodes = [node for node in graph.all_nodes() if node.domain == ""]
        scans = frozenset(node for node in nodes if node.op_type == "Scan")
        return cls(scans, frozenset(filter(is_recurrent, nodes)) if scans else frozenset())

    def guard(self, ctx: Context, fire: Fire) -> list[NodeReport]:
        """Put the nodes under an If each, where one of the Scans is gone, or is not read any more."""
        if not self.nodes:
            return []
        if all(node.graph is not None for node in self.scans) and self.scans.isdisjoint(unread_nodes(ctx.model.graph)):
            return []
        return lower_nodes(ctx, [guard_recurrence], fire, only=self.nodes)
