"""Applies the rules on directions of recurrent nodes all over a model."""

from collections.abc import Callable, Sequence
from types import ModuleType

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.base.report import NodeReport, Reason
from rewrites.driver.prepare import drop_unread
from rewrites.edits.direction.pairs import find_pairs, may_have_pairs
from rewrites.edits.rule import Patch
from rewrites.graph.context import Context
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops.checks import label
from rewrites.ops.rnn.recurrent_node import is_recurrent, read
from rewrites.rules.direction import both_directions, turned_nodes

__all__ = ["join_directions"]

Fire = Callable[[ModuleType, NodeReport, Patch], Sequence[ir.Node] | None]


def join_directions(ctx: Context, rules: Sequence[ModuleType], fire: Fire) -> list[NodeReport]:
    """Turn nodes round and make them bidirectional where ``rules`` has the rules; report what was done, and pairs that are left."""
    reports = _turn(ctx, fire) if turned_nodes in rules else []
    if both_directions not in rules or not may_have_pairs(ctx.model.graph):
        return reports
    drop_unread(ctx.model.graph)
    while True:
        left, fired = list[NodeReport](), False
        for pair in find_pairs(ctx.model.graph, ctx.opset):
            node = pair.forward.node
            if fired and pair.guards is not None:  # an If may have become part of another
                break
            entry = NodeReport(_where(ctx.model.graph, node, "main") or "main", node.op_type)
            with ctx.vetoes.blaming(both_directions.NAME, entry.where):
                outcome = ctx.vetoes.on(both_directions.NAME, entry.where) or both_directions.check(pair, ctx)
            if isinstance(outcome, Patch):
                if fire(both_directions, entry, outcome) is None:
                    return reports
                reports.append(entry)
                fired = True
            elif not outcome.silent:
                entry.reasons.append(Reason(both_directions.NAME, outcome.code, outcome.detail))
                left.append(entry)
        if not fired:
            return reports + left


def _turn(ctx: Context, fire: Fire) -> list[NodeReport]:
    reports = list[NodeReport]()
    nodes = [node for node in all_nodes(ctx.model.graph) if is_recurrent(node) and turned_nodes.may_be_turned(node)]
    for node in nodes:
        view = read(node)
        if isinstance(view, NotApplicable):
            continue
        entry = NodeReport(_where(ctx.model.graph, node, "main") or "main", node.op_type)
        with ctx.vetoes.blaming(turned_nodes.NAME, entry.where):
            outcome = ctx.vetoes.on(turned_nodes.NAME, entry.where) or turned_nodes.check(view, ctx)
        if isinstance(outcome, Patch):
            if fire(turned_nodes, entry, outcome) is None:
                break
            reports.append(entry)
        elif not outcome.silent:
            entry.reasons.append(Reason(turned_nodes.NAME, outcome.code, outcome.detail))
            reports.append(entry)
    return reports


def _where(graph: ir.Graph, wanted: ir.Node, path: str) -> str | None:
    for node in graph:
        here = f"{path}/{node.op_type} {label(node)}"
        if node is wanted:
            return here
        for inner in node_graphs(node):
            found = _where(inner, wanted, here)
            if found is not None:
                return found
    return None
