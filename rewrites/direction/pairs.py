"""Finds recurrent nodes that are the two directions of one bidirectional node."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.value_numbering import SameValues
from rewrites.base.not_applicable import NotApplicable
from rewrites.direction.meetings import meetings
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.ops.rnn.recurrent_node import RecurrentNode, is_recurrent, read

__all__ = ["Pair", "find_pairs", "may_have_pairs"]


@dataclass(frozen=True)
class Pair:
    """``forward`` and ``backward`` are alike but for weights, activations and initial states.

    ``guards``: the Ifs on one condition in the same branch of which they stand, where that is not one graph.
    """

    forward: RecurrentNode
    backward: RecurrentNode
    guards: tuple[ir.Node, ir.Node] | None = None

    @property
    def views(self) -> tuple[RecurrentNode, RecurrentNode]:
        """Both, in the order of a bidirectional node."""
        return self.forward, self.backward

    @property
    def outputs(self) -> list[tuple[ir.Value | None, ir.Value | None]]:
        """The results of both, as far as they are read: sequences, then final states."""
        sides = [[value if value.uses() or value.is_graph_output() else None for value in view.node.outputs] for view in self.views]
        count = max(map(len, sides))
        one, other = ([*side, *[None] * (count - len(side))] for side in sides)
        return list(zip(one, other, strict=True))


def may_have_pairs(graph: ir.Graph) -> bool:
    """Whether there are nodes of both directions at all."""
    directions = set()
    for node in all_nodes(graph):
        view = read(node) if is_recurrent(node) else None
        if view is not None and not isinstance(view, NotApplicable):
            directions.add(view.reverse)
    return {(False,), (True,)} <= directions


def find_pairs(graph: ir.Graph, opset: int) -> list[Pair]:
    """Return the pairs of the main graph ``graph`` and the graphs nested in it, each node in one pair at most."""
    same, ifs = SameValues(), _ifs(graph)
    views = list(_one_way_nodes(graph))
    pairs = _matched(views, id, same, opset)
    taken = {view.node for pair in pairs for view in pair.views}
    left = [view for view in views if view.node not in taken]
    for pair in _matched(left, lambda inner: _guarded_place(inner, ifs, same), same, opset):
        one, other = (view.node.graph for view in pair.views)
        if one is not other and isinstance(one, ir.Graph) and isinstance(other, ir.Graph):
            pairs.append(Pair(pair.forward, pair.backward, (ifs[one][0], ifs[other][0])))
    return pairs


def _one_way_nodes(graph: ir.Graph) -> Iterator[RecurrentNode]:
    for node in all_nodes(graph):
        view = read(node) if is_recurrent(node) else None
        if view is not None and not isinstance(view, NotApplicable) and view.directions == 1 and not view.batch_first:
            yield view


def _matched(views: Sequence[RecurrentNode], place_of: Callable[[object], Hashable], same: SameValues, opset: int) -> list[Pair]:
    """Return pairs of nodes of one place that may be put together, rather of those whose results meet than of others."""
    groups: dict[Hashable, tuple[list[RecurrentNode], list[RecurrentNode]]] = {}
    for view in views:
        place = place_of(view.node.graph)
        if place is not None:
            settings = (view.kind, view.hidden, view.clip, view.input_forget, view.linear_before_reset, view.dtype)
            inputs = (same.number(view.x), same.number(view.input("sequence_lens")), view.input("P") is None)
            groups.setdefault((place, settings, inputs), ([], []))[view.reverse[0]].append(view)
    pairs = []
    for forwards, backwards in groups.values():
        for forward in forwards:
            found = [Pair(forward, backward) for backward in backwards]
            if found:
                chosen = next((pair for pair in found if _meet(pair, opset)), found[0])
                backwards.remove(chosen.backward)
                pairs.append(chosen)
    return pairs


def _meet(pair: Pair, opset: int) -> bool:
    return any(one is not None and other is not None and meetings(one, other, opset) for one, other in pair.outputs)


def _ifs(graph: ir.Graph) -> dict[ir.Graph, tuple[ir.Node, str]]:
    """Return for each branch the If, and the name of the branch."""
    found = {}
    for node in all_nodes(graph):
        if node.op_type == "If" and node.domain == "":
            for branch in node_graphs(node):
                name = "then_branch" if branch is node.attributes["then_branch"].as_graph() else "else_branch"
                found[branch] = (node, name)
    return found


def _guarded_place(inner: object, ifs: dict[ir.Graph, tuple[ir.Node, str]], same: SameValues) -> Hashable:
    if not isinstance(inner, ir.Graph) or inner not in ifs:
        return None
    node, name = ifs[inner]
    return (id(node.graph), same.number(node.inputs[0]), name)
