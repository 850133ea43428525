"""Puts recurrent nodes of the original model under an If if they may now crash on empty tensors.

    Scan (x), GRU (x, W, R)    ->    If (x has steps and rows) then GRU (x, W, R) else an empty sequence

onnxruntime crashes on a GRU or LSTM with an empty batch, and on a GRU without steps. Many other operators stop the run with an
error instead, for example a Scan without steps. If a Scan ran before a GRU in the original model, its error prevented the crash of
the GRU. So if a rule removed the Scan, the GRU needs an If around it. A node that a rule moved out of a loop body needs an If too,
because the node now runs even if the loop has no steps.

Works around ORT-SCAN-NO-STEPS, ORT-GRU-NO-STEPS, ORT-RECURRENT-NO-ROWS and ORT-QUANTIZED-LSTM-NO-ROWS.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.dependence import unread_nodes
from rewrites.base.report import NodeReport
from rewrites.driver.applying import ask
from rewrites.driver.recurrent_nodes import Fire, change_recurrent_nodes
from rewrites.graph.context import Context
from rewrites.graph.marks import ROWS_OF_STEPS, UNSHIELDED
from rewrites.graph.values import static_dims
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import is_loop
from rewrites.loops.parts import label
from rewrites.ops.rnn.recurrent_node import is_recurrent
from rewrites.registry import GUARD_RECURRENCE, GUARDS
from rewrites.rule import Patch

__all__ = ["Shielded", "holds_recurrent_nodes"]

_REFUSE_NOTHING = frozenset(
    [
        *("Gather", "GatherElements", "GatherND", "Slice", "Squeeze", "Reshape", "Split", "TopK", "ArgMax", "ArgMin"),
        *("ReduceMax", "ReduceMin", "ReduceMean", "MaxPool", "AveragePool", "Conv", "SequenceAt"),
    ]
)
"""Operators that may refuse an empty tensor in some version of onnxruntime."""


@dataclass(frozen=True)
class Shielded:
    """The nodes that may crash on empty tensors, and the nodes whose failure may prevent the crash.

    Args:
        shield: Nodes that may fail on empty tensors without a crash.
        nodes: Recurrent nodes, which may crash.
        others: Other nodes that may crash.
        depths: The number of loops around each node of ``nodes`` and ``others`` in the original model.
    """

    shield: frozenset[ir.Node]
    nodes: frozenset[ir.Node]
    others: frozenset[ir.Node]
    depths: dict[ir.Node, int]

    @classmethod
    def of(cls, graph: ir.Graph) -> "Shielded":
        """Find the nodes in ``graph`` and nested graphs that may crash, or whose error may prevent a crash."""
        depths = dict(_with_depths(graph, 0))
        recurrent = frozenset(filter(is_recurrent, depths))
        others = frozenset(filter(_is_fragile, depths))
        shield = (node for node in depths if node.domain == "" and _may_refuse(node)) if recurrent or others else ()
        return cls(frozenset(shield), recurrent, others, {node: depths[node] for node in recurrent | others})

    def guard(self, ctx: Context, fire: Fire) -> list[NodeReport]:
        """Put each node that may now crash under an If. Return a report on each of these nodes.

        If a node of ``shield`` was removed or is unread, each of ``nodes`` and ``others`` may now crash. If not, only the nodes
        that were moved out of a loop may. Nodes of ``others`` that are inside a loop get no If.
        """
        graph = ctx.model.graph
        now = dict(_with_depths(graph, 0)) if self.depths else {}
        bare = {node for node, depth in self.depths.items() if now.get(node, depth) < depth}
        if any(node.graph is None for node in self.shield) or not self.shield.isdisjoint(unread_nodes(graph)):
            bare |= self.depths.keys()
        others = [node for node, depth in now.items() if not depth and node in self.others & bare]
        reports = [report for node in others for report in _guarded(node, ctx, fire)]
        nodes = self.nodes & bare | {node for node in all_nodes(graph) if ROWS_OF_STEPS.on(node)}
        for node in nodes:
            UNSHIELDED.put(node, True)
        return reports + (change_recurrent_nodes(ctx, [GUARD_RECURRENCE], fire, only=nodes) if nodes else [])


def holds_recurrent_nodes(function: ir.Function) -> bool:
    """Return True if ``function`` contains a recurrent node.

    ``Shielded.guard`` does not guard nodes in functions.
    """
    return any(is_recurrent(node) for node in all_nodes(function))


def _with_depths(graph: ir.Graph, depth: int) -> Iterator[tuple[ir.Node, int]]:
    """Yield all nodes of ``graph`` and its nested graphs, each with the number of loops around it."""
    for node in graph:
        yield node, depth
        for inner in node_graphs(node):
            yield from _with_depths(inner, depth + is_loop(node))


def _guarded(node: ir.Node, ctx: Context, fire: Fire) -> list[NodeReport]:
    entry = NodeReport(f"main/{node.op_type} {label(node)}", node.op_type)
    rule = GUARDS[node.op_type]
    patch = ask(rule, node, entry.where, ctx)
    return [entry] if isinstance(patch, Patch) and fire(rule, entry, patch) is not None else []


def _may_refuse(node: ir.Node) -> bool:
    """Return True if onnxruntime may stop the run with an error because the first input is empty."""
    if node.op_type == "Scan":
        return True
    if node.op_type not in _REFUSE_NOTHING or not node.inputs or node.inputs[0] is None:
        return False
    dims, maker = static_dims(node.inputs[0]), node.inputs[0].producer()
    return (dims is None or 0 in dims) and (maker is None or maker.op_type != "Shape")


def _is_fragile(node: ir.Node) -> bool:
    """Return True if ``node`` may crash on empty tensors: an Einsum of several operands, or a guarded contrib operator."""
    if node.op_type == "Einsum":
        return node.domain == "" and len(node.inputs) > 1
    return node.op_type in GUARDS and node.domain == "com.microsoft"
