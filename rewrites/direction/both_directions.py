"""Joins a forward and a reverse node on the same sequence into one bidirectional node.

    Concat <axis = -1> (GRU(xs), GRU <direction = "reverse"> (xs))
        ->    Reshape(Transpose(GRU <direction = "bidirectional"> (xs)))

Conditions: both nodes have the same operator, sequence, lengths, hidden size, clip and settings, and neither depends on the other.
Weights, biases and initial states are stacked, and the activations are joined. A missing bias or initial state counts as 0. If a
Concat joins a result of both nodes, its users read the new result instead. All other results are split from the new result. If the
nodes are in two Ifs with the same condition, the two Ifs become one If, and Concats of their results move into it:

    y = Concat(If(c) then f else 0, If(c) then g else 0)    ->    y = If(c) then Concat(f, g) else Concat(0, 0)

On a CPU, onnxruntime runs the two directions one after the other, and the result must be rearranged. So the new
node is only faster there if its hidden size is at most ``_WIDEST`` and it runs on one row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.dependence import nodes_computing, reads
from rewrites.base.not_applicable import NotApplicable
from rewrites.direction.pairs import Pair, concats_behind, joining_concats
from rewrites.direction.write import constant_tensor, is_zero, replace_results, write_bidirectional
from rewrites.graph.context import Context
from rewrites.graph.replace import lift_initializers, remove_nodes, take_out, take_over
from rewrites.graph.values import dim_of
from rewrites.graph.walk import node_graphs
from rewrites.ops.versions import axis_of, concat, transpose
from rewrites.rule import NOTHING_HERE, Patch, Rule

__all__ = ["RULE", "check"]

_SINCE = 8
_WIDEST = 128
_JOINED = ("W", "R", "B", "initial_h", "initial_c", "P")
_BRANCHES = ("then_branch", "else_branch")


@dataclass(frozen=True)
class _ConcatOfIfs:
    """A Concat of an output of a first If and an output of a second If. No other node reads these outputs.

    Args:
        node: The Concat.
        first: The index of the output of the first If.
        second: The index of the output of the second If.
        axes: Maps each axis of the Concat's operands to an axis of the Ifs' outputs, because Transposes may be between them.
        swapped: True if the first operand is the output of the second If.
    """

    node: ir.Node
    first: int
    second: int
    axes: tuple[int, ...]
    swapped: bool


def check(pair: Pair, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if one bidirectional node can replace the two nodes."""
    forward = pair.forward
    if ctx.opset < _SINCE or ctx.options.bidirectional == "never" or forward.dtype is None or forward.x.shape is None:
        return NOTHING_HERE
    if any(value is not None and value.shape is None for both in pair.outputs for value in both):
        return NOTHING_HERE
    if ctx.options.bidirectional == "equal" and forward.functions != pair.backward.functions:
        detail = f"{forward.label} and {pair.backward.label} have different activations, and the target needs equal ones"
        return NotApplicable("RNN-DIRECTIONS", detail)
    if ctx.options.bidirectional == "narrow" and (slow := _slower_reason(pair, ctx)):
        return NotApplicable("COST-BIDIRECTIONAL", f"{forward.label} and {pair.backward.label} {slow}")
    nodes = pair.guards or (forward.node, pair.backward.node)
    order = _nodes_to_move_up(*nodes)
    if order is None:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        first, to_move = order
        _move_up(first, to_move)
        if pair.guards is not None:
            _join_guards(first, nodes[1] if first is nodes[0] else nodes[0], ctx)
            new_order = _nodes_to_move_up(forward.node, pair.backward.node)
            assert new_order is not None
            first, to_move = new_order
            _move_up(first, to_move)
        b = ctx.builder()
        results = write_bidirectional(b, pair)
        node = results[0].producer()
        assert node is not None
        replace_results(b, pair, results, ctx.names, first)
        b.insert_before(first)
        remove_nodes([forward.node, pair.backward.node])
        return [node]

    under = " under one If" if pair.guards is not None else ""
    return Patch(f"made one bidirectional {forward.kind} of it and {pair.backward.label}{under}", edit)


def _slower_reason(pair: Pair, ctx: Context) -> str | None:
    """Return a reason if one bidirectional node is slower than two (onnxruntime 1.31 on a CPU)."""
    rows = dim_of(pair.forward.x, 1)
    known = rows if isinstance(rows, int) else ctx.options.sizes.get(rows or "")
    if known != 1 or pair.forward.hidden > _WIDEST:
        rows_text = "an unknown number of rows" if known is None else "1 row" if known == 1 else f"{known} rows"
        return f"are faster than one of both directions for {rows_text} of width {pair.forward.hidden}"
    inputs = [(name, value) for view in pair.views for name in _JOINED if (value := view.input(name)) is not None]
    if any(constant_tensor(value) is None and not (name.startswith("initial") and is_zero(value)) for name, value in inputs):
        return "have weights or initial states that would have to be joined in every run"
    if not all(_are_only_joined(forth, back, ctx.opset) for forth, back in pair.outputs):
        return "have results that would have to be split in every run"
    return None


def _are_only_joined(forward: ir.Value | None, backward: ir.Value | None, opset: int) -> bool:
    if forward is None or backward is None:
        return forward is backward
    return len(joining_concats(forward, backward, opset)) == 1 and _has_one_path(forward) and _has_one_path(backward)


def _has_one_path(value: ir.Value) -> bool:
    """Return True if each value on the way from ``value`` to a Concat has only one reader."""
    while len(value.uses()) == 1 and not value.is_graph_output():
        node = next(iter(value.uses())).node
        if node.op_type == "Concat":
            return True
        value = node.outputs[0]
    return False


def _nodes_to_move_up(forward: ir.Node, backward: ir.Node) -> tuple[ir.Node, list[ir.Node]] | None:
    """Find the nodes to move so that both nodes can be joined at the position of the first one.

    Return a pair: the node that comes first in the graph, and the nodes after it on which the other node depends. Return None if
    the other node depends on the first node.
    """
    graph = forward.graph
    assert isinstance(graph, ir.Graph)
    order = list(graph)
    first, second = (forward, backward) if order.index(forward) < order.index(backward) else (backward, forward)
    needed = set(nodes_computing(graph, reads(second)))
    if first in needed:
        return None
    return first, [node for node in order[order.index(first) + 1 :] if node in needed]


def _move_up(first: ir.Node, nodes: list[ir.Node]) -> None:
    graph = first.graph
    assert isinstance(graph, ir.Graph)
    graph.remove(nodes)
    graph.insert_before(first, nodes)


def _join_guards(first: ir.Node, second: ir.Node, ctx: Context) -> None:
    """Replace the Ifs ``first`` and ``second`` by one If at the position of ``first``.

    The nodes on which the two Ifs depend must already come before this position.
    """
    concats = _concats_of_ifs(first, second, ctx.opset)
    joined_outputs = ((first, {joining.first for joining in concats}), (second, {joining.second for joining in concats}))
    kept_indices = [[i for i in range(len(node.outputs)) if i not in joined_indices] for node, joined_indices in joined_outputs]
    branches = [_joined_branch(first, second, name, concats, kept_indices, ctx) for name in _BRANCHES]
    kept_outputs = [node.outputs[i] for node, chosen in zip((first, second), kept_indices, strict=True) for i in chosen]
    olds = [*kept_outputs, *(each.node.outputs[0] for each in concats)]
    outputs = [ir.Value(name=ctx.names.fresh(f"{old.name}_if"), type=old.type, shape=old.shape) for old in olds]
    attributes = [ir.AttrGraph(name, branch) for name, branch in zip(_BRANCHES, branches, strict=True)]
    node = ir.Node("", "If", [first.inputs[0]], attributes, outputs=outputs, name=ctx.names.fresh(first.name or "node_If"))
    assert first.graph is not None
    first.graph.insert_before(first, node)
    for old, value in zip(olds, outputs, strict=True):
        take_over(old, value, ctx.names)
    _remove_if(first)
    _remove_if(second)


def _concats_of_ifs(first: ir.Node, second: ir.Node, opset: int) -> list[_ConcatOfIfs]:
    found = []
    second_outputs = {}
    for i, value in enumerate(second.outputs):
        reader = _only_concat_behind(value, opset)
        if reader is not None:
            second_outputs[reader[:2]] = (i, reader[2])
    for i, value in enumerate(first.outputs):
        reader = _only_concat_behind(value, opset)
        if reader is None:
            continue
        node, index, axes = reader
        second_output = second_outputs.get((node, 1 - index))
        if second_output is not None and len(node.inputs) == 2 and second_output[1] == axes and node.graph is first.graph:
            found.append(_ConcatOfIfs(node, i, second_output[0], axes, index == 1))
    return found


def _only_concat_behind(value: ir.Value, opset: int) -> tuple[ir.Node, int, tuple[int, ...]] | None:
    """Return the element of ``concats_behind(value)`` if no node but its Concat reads ``value``.

    Identities and Transposes may be between ``value`` and the Concat. If a Squeeze is between them, return None.
    """
    concats = concats_behind(value, opset)
    if value.shape is None or len(concats) != 1 or len(concats[0][2]) != len(value.shape):
        return None
    while True:
        uses = list(value.uses())
        if len(uses) != 1 or value.is_graph_output():
            return None
        node, _ = uses[0]
        if node is concats[0][0]:
            return concats[0]
        value = node.outputs[0]


def _joined_branch(
    first: ir.Node, second: ir.Node, name: str, concats: Sequence[_ConcatOfIfs], kept_indices: Sequence[Sequence[int]], ctx: Context
) -> ir.Graph:
    """Return a branch with the nodes of the branches ``name`` of both Ifs, and copies of ``concats``."""
    graphs = [node.attributes[name].as_graph() for node in (first, second)]
    outputs = list[list[ir.Value]]()
    for graph in graphs:
        lift_initializers(graph, ctx.model.graph, ctx.names)
        outputs.append(list(graph.outputs))
        graph.outputs.clear()
    nodes = list[ir.Node]()
    for graph in graphs:
        inside = list(graph)
        take_out(inside, ctx.names)
        nodes.extend(inside)
    build = ctx.builder()
    results = [values[i] for values, chosen in zip(outputs, kept_indices, strict=True) for i in chosen]
    for joining in concats:
        sides = [outputs[0][joining.first], outputs[1][joining.second]]
        sides = [transpose(build, side, joining.axes) for side in (reversed(sides) if joining.swapped else sides)]
        results.append(concat(build, sides, axis_of(joining.node, 0, len(joining.axes))))
    nodes.extend(build.nodes)
    build.nodes = []
    return ir.Graph([], results, nodes=nodes, name=ctx.names.fresh(graphs[0].name or name))


def _remove_if(node: ir.Node) -> None:
    """Remove the If ``node``, whose branches must be empty, and all nodes that depend on its results."""
    pending = list(node.outputs)
    users = list[ir.Node]()
    while pending:
        for user, _ in pending.pop().uses():
            users.append(user)
            pending.extend(user.outputs)
    remove_nodes([*reversed(list(dict.fromkeys(users))), node])
    assert not any(len(graph) for graph in node_graphs(node))


RULE = Rule("both-directions", "direction", "pair", check)
