"""Makes one If of two on the same condition, and brings into it what their results only meet in.

y = Concat(If(c) then f else 0, If(c) then g else 0)    ->    y = If(c) then Concat(f, g) else Concat(0, 0)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.direction.meetings import arrivals
from rewrites.graph.context import Context
from rewrites.graph.names import Names
from rewrites.graph.replace import lift_initializers, remove_nodes, take_over
from rewrites.graph.walk import node_graphs
from rewrites.ops.versions import axis_of, concat, transpose

__all__ = ["join_guards"]

_BRANCHES = ("then_branch", "else_branch")


@dataclass(frozen=True)
class _Meeting:
    """Results number ``one`` of the first If and ``other`` of the second only come to the Concat ``node``, as ``axes`` say."""

    node: ir.Node
    one: int
    other: int
    axes: tuple[int, ...]
    swapped: bool


def join_guards(first: ir.Node, second: ir.Node, ctx: Context) -> ir.Node:
    """Put one If in the place of ``first``, where all that both read can be read already."""
    met = _meetings(first, second, ctx.opset)
    places = [[i for i in range(len(node.outputs)) if i not in gone] for node, gone in _gone(first, second, met)]
    branches = [_joined(first, second, name, met, places, ctx) for name in _BRANCHES]
    kept = [node.outputs[i] for node, chosen in zip((first, second), places, strict=True) for i in chosen]
    olds = [*kept, *(each.node.outputs[0] for each in met)]
    outputs = [ir.Value(name=ctx.names.fresh(f"{old.name}_if"), type=old.type, shape=old.shape) for old in olds]
    attributes = [ir.AttrGraph(name, branch) for name, branch in zip(_BRANCHES, branches, strict=True)]
    node = ir.Node("", "If", [first.inputs[0]], attributes, outputs=outputs, name=ctx.names.fresh(first.name or "node_If"))
    assert first.graph is not None
    first.graph.insert_before(first, node)
    for old, value in zip(olds, outputs, strict=True):
        take_over(old, value, ctx.names)
    for one in (first, second):
        _drop(one)
    return node


def _meetings(first: ir.Node, second: ir.Node, opset: int) -> list[_Meeting]:
    found = []
    theirs = {}
    for i, value in enumerate(second.outputs):
        only = _only_arrival(value, opset)
        if only is not None:
            theirs[only[:2]] = (i, only[2])
    for i, value in enumerate(first.outputs):
        only = _only_arrival(value, opset)
        if only is None:
            continue
        node, place, axes = only
        other = theirs.get((node, 1 - place))
        if other is not None and len(node.inputs) == 2 and other[1] == axes and node.graph is first.graph:
            found.append(_Meeting(node, i, other[0], axes, place == 1))
    return found


def _only_arrival(value: ir.Value, opset: int) -> tuple[ir.Node, int, tuple[int, ...]] | None:
    """Return the Concat that ``value`` comes to, with all its axes, where nothing else is made of it."""
    found = arrivals(value, opset)
    if value.shape is None or len(found) != 1 or len(found[0][2]) != len(value.shape):
        return None
    one = value
    while True:
        uses = list(one.uses())
        if len(uses) != 1 or one.is_graph_output():
            return None
        node, _ = uses[0]
        if node is found[0][0]:
            return found[0]
        one = node.outputs[0]


def _gone(first: ir.Node, second: ir.Node, met: Sequence[_Meeting]) -> list[tuple[ir.Node, set[int]]]:
    return [(first, {each.one for each in met}), (second, {each.other for each in met})]


def _joined(
    first: ir.Node, second: ir.Node, name: str, met: Sequence[_Meeting], places: Sequence[Sequence[int]], ctx: Context
) -> ir.Graph:
    """Make one branch of that of both; takes the nodes out of them."""
    graphs = [node.attributes[name].as_graph() for node in (first, second)]
    outputs = list[list[ir.Value]]()
    for graph in graphs:
        lift_initializers(graph, ctx.model.graph, ctx.names)
        outputs.append(list(graph.outputs))
        graph.outputs.clear()
    nodes = list[ir.Node]()
    for graph in graphs:
        inside = list(graph)
        graph.remove(inside)
        _rename(inside, ctx.names)
        nodes.extend(inside)
    build = ctx.builder()
    results = [values[i] for values, chosen in zip(outputs, places, strict=True) for i in chosen]
    for each in met:
        sides = [outputs[0][each.one], outputs[1][each.other]]
        sides = [transpose(build, side, each.axes) for side in (reversed(sides) if each.swapped else sides)]
        results.append(concat(build, sides, axis_of(each.node, 0, len(each.axes))))
    nodes.extend(build.nodes)
    build.nodes = []
    return ir.Graph([], results, nodes=nodes, name=ctx.names.fresh(graphs[0].name or name))


def _rename(nodes: Sequence[ir.Node], names: Names) -> None:
    for node in nodes:
        node.name = names.unshared(node.name) if node.name else names.fresh(f"node_{node.op_type}")
        for value in node.outputs:
            if value.name:
                value.name = names.unshared(value.name)


def _drop(node: ir.Node) -> None:
    """Remove an If whose branches are empty, and what moved the axes of its results for nobody."""
    waiting = list(node.outputs)
    behind = list[ir.Node]()
    while waiting:
        for user, _ in waiting.pop().uses():
            behind.append(user)
            waiting.extend(user.outputs)
    remove_nodes([*reversed(list(dict.fromkeys(behind))), node])
    assert not any(len(graph) for graph in node_graphs(node))
