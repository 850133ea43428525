"""Finds pairs of nodes that can become one bidirectional node, and the Concats of their results.

The two results are neighbouring operands of a Concat. Before the Concat, Transposes and Squeezes may change the axes if they change
the axes of both results in the same way:

    Concat <axis = 2> (Squeeze <axes = [1]> (Y1), Squeeze <axes = [1]> (Y2))
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import onnx_ir as ir

from rewrites.analysis.value_numbering import SameValues
from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.values import is_read, producer_of
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.ops.rnn.recurrent_node import RecurrentNode, is_recurrent, read
from rewrites.ops.versions import DYNAMIC, axes_of, axis_of, perm_of

__all__ = ["JoiningConcat", "Pair", "concats_behind", "find_pairs", "joining_concats", "may_be_reversed", "may_have_pairs"]

_REVERSE = frozenset({"Gather", "ReverseSequence", "Slice"})


@dataclass(frozen=True)
class Pair:
    """A forward and a reverse node that otherwise differ only in weights, activations and initial states.

    ``guards``: None if both nodes are in the same graph. Otherwise the two Ifs that contain the nodes, in branches of the same
    name. Both Ifs have the same condition.
    """

    forward: RecurrentNode
    backward: RecurrentNode
    guards: tuple[ir.Node, ir.Node] | None = None

    @property
    def views(self) -> tuple[RecurrentNode, RecurrentNode]:
        """Return both nodes: first the forward node, then the reverse node."""
        return self.forward, self.backward

    @property
    def outputs(self) -> list[tuple[ir.Value | None, ir.Value | None]]:
        """Return a pair (forward, reverse) for each result: the sequence, then the final states.

        An unread result is None.
        """
        sides = [[value if is_read(value) else None for value in view.node.outputs] for view in self.views]
        return list(zip_longest(sides[0], sides[1]))


@dataclass(frozen=True)
class JoiningConcat:
    """A Concat that joins a result of the forward node with the same result of the reverse node.

    Args:
        node: The Concat.
        index: The index of the operand from the forward node. The next operand is from the reverse node.
        axes: Maps each axis of these two operands to an axis of the nodes' results. For example, ``(0, 2, 3)`` means that axis 1
            of the results is squeezed before the Concat.
        axis: The axis along which the Concat joins the two operands.
    """

    node: ir.Node
    index: int
    axes: tuple[int, ...]
    axis: int


def may_have_pairs(graph: ir.Graph) -> bool:
    """Return True if ``graph`` has both a forward and a reverse recurrent node."""
    return {(False,), (True,)} <= {view.reverse for view in _views(graph)}


def _views(graph: ir.Graph) -> Iterator[RecurrentNode]:
    for node in all_nodes(graph):
        view = read(node) if is_recurrent(node) else None
        if view is not None and not isinstance(view, NotApplicable):
            yield view


def find_pairs(graph: ir.Graph, opset: int) -> list[Pair]:
    """Return the pairs of nodes in ``graph`` and its nested graphs. Each node is in at most one pair."""
    same, ifs = SameValues(), _ifs(graph)
    views = [view for view in _views(graph) if view.directions == 1 and not view.batch_first]
    pairs = _pair_views(views, id, same, opset)
    paired = {view.node for pair in pairs for view in pair.views}
    unpaired = [view for view in views if view.node not in paired]
    for pair in _pair_views(unpaired, lambda inner: _guard_key(inner, ifs, same), same, opset):
        forth, back = (view.node.graph for view in pair.views)
        if forth is not back and isinstance(forth, ir.Graph) and isinstance(back, ir.Graph):
            pairs.append(Pair(pair.forward, pair.backward, (ifs[forth][0], ifs[back][0])))
    return pairs


def _ifs(graph: ir.Graph) -> dict[ir.Graph, tuple[ir.Node, str]]:
    """Map each branch of an If in ``graph`` to the If and the attribute that holds the branch."""
    ifs = {}
    for node in all_nodes(graph):
        if node.op_type == "If" and node.domain == "":
            for branch in node_graphs(node):
                name = "then_branch" if branch is node.attributes["then_branch"].as_graph() else "else_branch"
                ifs[branch] = (node, name)
    return ifs


def _pair_views(views: Sequence[RecurrentNode], key_of: Callable[[object], Hashable], same: SameValues, opset: int) -> list[Pair]:
    """Pair each forward node with a reverse node of the same settings and the same input sequence.

    If several reverse nodes fit, prefer one whose results are concatenated with the results of the forward node.

    Args:
        views: The nodes.
        key_of: Maps the graph that contains a node to a key. Only nodes with equal keys are paired, and nodes with the key None are
            skipped.
        same: Recognises equal values.
        opset: The opset of the model.
    """
    groups: dict[Hashable, tuple[list[RecurrentNode], list[RecurrentNode]]] = {}
    for view in views:
        key = key_of(view.node.graph)
        if key is not None:
            settings = (view.kind, view.hidden, view.clip, view.input_forget, view.linear_before_reset, view.dtype)
            inputs = (same.number(view.x), same.number(view.input("sequence_lens")), view.input("P") is None)
            groups.setdefault((key, settings, inputs), ([], []))[view.reverse[0]].append(view)
    pairs = []
    for forwards, backwards in groups.values():
        for forward in forwards:
            candidates = [Pair(forward, backward) for backward in backwards]
            if candidates:
                best = next((pair for pair in candidates if _are_results_joined(pair, opset)), candidates[0])
                backwards.remove(best.backward)
                pairs.append(best)
    return pairs


def _are_results_joined(pair: Pair, opset: int) -> bool:
    return any(forth is not None and back is not None and joining_concats(forth, back, opset) for forth, back in pair.outputs)


def _guard_key(inner: object, ifs: dict[ir.Graph, tuple[ir.Node, str]], same: SameValues) -> Hashable:
    if not isinstance(inner, ir.Graph) or inner not in ifs:
        return None
    node, name = ifs[inner]
    return (id(node.graph), same.number(node.inputs[0]), name)


def joining_concats(forward: ir.Value, backward: ir.Value, opset: int) -> list[JoiningConcat]:
    """Return the Concats that join ``forward`` and ``backward`` as a bidirectional node would.

    The Concat must join along the directions axis, or along the last axis if the directions axis is squeezed before the Concat.

    Args:
        forward: A result of the forward node of a pair.
        backward: The same result of the reverse node.
        opset: The opset of the model.
    """
    if forward.shape is None or backward.shape is None or len(forward.shape) != len(backward.shape):
        return []
    rank, found = len(forward.shape), list[JoiningConcat]()
    backward_axes = {(node, index): axes for node, index, axes in concats_behind(backward, opset)}
    for node, index, axes in concats_behind(forward, opset):
        if backward_axes.get((node, index + 1)) != axes:
            continue
        axis = axis_of(node, 0, len(axes))
        direction = rank - 3
        if axes[axis] == direction or (axes[axis] == rank - 1 and direction not in axes):
            found.append(JoiningConcat(node, index, axes, axis))
    return found


def concats_behind(value: ir.Value, opset: int) -> list[tuple[ir.Node, int, tuple[int, ...]]]:
    """Return the Concats that read ``value`` directly, or through Identities, Transposes and Squeezes.

    Returns:
        A triple for each Concat: the Concat, the index of its operand, and the axes of ``value`` to which the axes of the operand
        correspond, in order.
    """
    concats, pending = list[tuple[ir.Node, int, tuple[int, ...]]](), [(value, tuple(range(len(value.shape or ()))))]
    while pending:
        moved, axes = pending.pop()
        for node, index in moved.uses():
            if node.domain != "":
                continue
            if node.op_type == "Concat":
                concats.append((node, index, axes))
            elif index == 0 and node.op_type == "Identity":
                pending.append((node.outputs[0], axes))
            elif index == 0 and node.op_type == "Transpose":
                pending.append((node.outputs[0], tuple(axes[i] for i in perm_of(node, len(axes)))))
            elif index == 0 and node.op_type == "Squeeze":
                squeezed = axes_of(node, opset, len(axes))
                if squeezed is not None and squeezed is not DYNAMIC:
                    pending.append((node.outputs[0], tuple(axis for i, axis in enumerate(axes) if i not in squeezed)))
    return concats


def may_be_reversed(node: ir.Node) -> bool:
    """Return True if an operator that may reverse the order computes the sequence that ``node`` reads.

    Such operators are Gather, ReverseSequence and Slice.
    """
    producer = producer_of(node.inputs[0]) if node.inputs else None
    while producer is not None and producer.op_type in ("Identity", "Transpose"):
        producer = producer_of(producer.inputs[0])
    return producer is not None and producer.op_type in _REVERSE
