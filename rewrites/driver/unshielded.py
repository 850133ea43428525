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
from rewrites.driver.applying import try_rule
from rewrites.driver.recurrent_nodes import ApplyPatch, change_recurrent_nodes
from rewrites.graph.context import Context
from rewrites.graph.marks import ROWS_OF_STEPS, UNSHIELDED
from rewrites.graph.values import static_dims
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import is_loop
from rewrites.loops.parts import label
from rewrites.ops.rnn.recurrent_node import is_recurrent
from rewrites.registry import GUARD_RECURRENCE, GUARDS
from rewrites.rule import Patch

__all__ = ["CrashCandidates", "holds_recurrent_nodes"]

_MAY_REJECT_EMPTY = frozenset(
    [
        *("Gather", "GatherElements", "GatherND", "Slice", "Squeeze", "Reshape", "Split", "TopK", "ArgMax", "ArgMin"),
        *("ReduceMax", "ReduceMin", "ReduceMean", "MaxPool", "AveragePool", "Conv", "SequenceAt"),
    ]
)
"""Operators that may refuse an empty tensor in some version of onnxruntime."""


@dataclass(frozen=True)
class CrashCandidates:
    """Nodes that may crash on empty tensors, and nodes whose error may prevent the crash.

    All are nodes of the original model.

    Args:
        rejecting: Nodes that may stop the run with an error if a tensor is empty.
        recurrent: Recurrent nodes, which may crash.
        other_fragile: Other nodes that may crash.
        depths: The number of loops around each node of ``recurrent`` and ``other_fragile`` in the original model.
    """

    rejecting: frozenset[ir.Node]
    recurrent: frozenset[ir.Node]
    other_fragile: frozenset[ir.Node]
    depths: dict[ir.Node, int]

    @classmethod
    def of(cls, graph: ir.Graph) -> "CrashCandidates":
        """Find the nodes in ``graph`` that may crash, and the nodes whose error may prevent a crash.

        Nested graphs are searched too.
        """
        depths = dict(_with_loop_depths(graph, 0))
        recurrent = frozenset(filter(is_recurrent, depths))
        others = frozenset(filter(_is_fragile, depths))
        rejecting = (node for node in depths if node.domain == "" and _may_reject_empty(node)) if recurrent or others else ()
        return cls(frozenset(rejecting), recurrent, others, {node: depths[node] for node in recurrent | others})

    def guard_exposed(self, ctx: Context, apply_patch: ApplyPatch) -> list[NodeReport]:
        """Put an If around each node that may crash in the rewritten model of ``ctx``.

        Return a report on each of these nodes. In the original model, an error of a node in ``rejecting`` may have ended the run
        before another node crashed. If such a node was removed or is unread, its error no longer ends the run. Then all nodes of
        ``recurrent`` and ``other_fragile`` may crash. Otherwise, only the nodes that a rule moved out of a loop may crash. A node
        of ``other_fragile`` inside a loop gets no If.
        """
        graph = ctx.model.graph
        now = dict(_with_loop_depths(graph, 0)) if self.depths else {}
        exposed = {node for node, depth in self.depths.items() if now.get(node, depth) < depth}
        if any(node.graph is None for node in self.rejecting) or not self.rejecting.isdisjoint(unread_nodes(graph)):
            exposed |= self.depths.keys()
        exposed_others = [node for node, depth in now.items() if not depth and node in self.other_fragile & exposed]
        reports = [report for node in exposed_others for report in _guard_node(node, ctx, apply_patch)]
        nodes = self.recurrent & exposed | {node for node in all_nodes(graph) if ROWS_OF_STEPS.on(node)}
        for node in nodes:
            UNSHIELDED.put(node, True)
        return reports + (change_recurrent_nodes(ctx, [GUARD_RECURRENCE], apply_patch, only=nodes) if nodes else [])


def holds_recurrent_nodes(function: ir.Function) -> bool:
    """Return True if ``function`` contains a recurrent node.

    ``CrashCandidates.guard_exposed`` does not guard nodes in functions.
    """
    return any(is_recurrent(node) for node in all_nodes(function))


def _with_loop_depths(graph: ir.Graph, depth: int) -> Iterator[tuple[ir.Node, int]]:
    """Yield all nodes of ``graph`` and its nested graphs, each with the number of loops around it."""
    for node in graph:
        yield node, depth
        for inner in node_graphs(node):
            yield from _with_loop_depths(inner, depth + is_loop(node))


def _guard_node(node: ir.Node, ctx: Context, apply_patch: ApplyPatch) -> list[NodeReport]:
    entry = NodeReport(f"main/{node.op_type} {label(node)}", node.op_type)
    rule = GUARDS[node.op_type]
    patch = try_rule(rule, node, entry.where, ctx)
    return [entry] if isinstance(patch, Patch) and apply_patch(rule, entry, patch) is not None else []


def _may_reject_empty(node: ir.Node) -> bool:
    """Return True if onnxruntime may stop the run with an error because the first input is empty."""
    if node.op_type == "Scan":
        return True
    if node.op_type not in _MAY_REJECT_EMPTY or not node.inputs or node.inputs[0] is None:
        return False
    dims, producer = static_dims(node.inputs[0]), node.inputs[0].producer()
    return (dims is None or 0 in dims) and (producer is None or producer.op_type != "Shape")


def _is_fragile(node: ir.Node) -> bool:
    """Return True if ``node`` may crash on empty tensors and is no recurrent node.

    Such nodes are Einsums of several operands, and the contrib operators in ``GUARDS``.
    """
    if node.op_type == "Einsum":
        return node.domain == "" and len(node.inputs) > 1
    return node.op_type in GUARDS and node.domain == "com.microsoft"
