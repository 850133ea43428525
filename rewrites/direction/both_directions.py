"""A forward and a reverse node on the same sequence become one bidirectional node.

    Concat <axis = -1> (GRU(xs), GRU <direction = "reverse"> (xs))
        ->    Reshape(Transpose(GRU <direction = "bidirectional"> (xs)))

Conditions: the same operator, sequence, lengths, hidden size, clip and settings; no result of one is behind the other. Weights,
biases and initial states are put one below the other (a missing bias or initial state is 0), activations one after the other.
Results that meet in a Concat, side by side or one below the other, are met with already; others are taken apart. Also nodes in two
Ifs on one condition, which become one If. On a CPU onnxruntime runs a bidirectional node one direction after the other and its
result has to be rearranged, so that only narrow nodes on one row gain.
"""

import onnx_ir as ir

from rewrites.analysis.dependence import nodes_behind, reads
from rewrites.base.not_applicable import NotApplicable
from rewrites.direction.guards import join_guards
from rewrites.direction.meetings import meetings
from rewrites.direction.pairs import Pair
from rewrites.direction.write import constant_behind, hand_out, is_zero, write_bidirectional
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes
from rewrites.graph.values import dim_of
from rewrites.rule import NOTHING_HERE, Patch, Rule

__all__ = ["RULE", "check"]


_SINCE = 8
_WIDEST = 128
_JOINED = ("W", "R", "B", "initial_h", "initial_c", "P")


def check(pair: Pair, ctx: Context) -> Patch | NotApplicable:
    """See whether two nodes may be one."""
    forward = pair.forward
    if ctx.opset < _SINCE or ctx.options.bidirectional == "never":
        return NOTHING_HERE
    if forward.dtype is None or forward.x.shape is None or any(value is not None and value.shape is None for value in _read(pair)):
        return NOTHING_HERE
    if ctx.options.bidirectional == "equal" and forward.functions != pair.backward.functions:
        detail = f"{forward.label} and {pair.backward.label} have other activations, and the target wants the same both ways"
        return NotApplicable("RNN-DIRECTIONS", detail)
    if ctx.options.bidirectional == "narrow" and (slow := _too_slow(pair, ctx)):
        return NotApplicable("COST-BIDIRECTIONAL", f"{forward.label} and {pair.backward.label} {slow}")
    nodes = pair.guards or (forward.node, pair.backward.node)
    between = _between(*nodes)
    if between is None:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        first, late = between
        _move_up(first, late)
        if pair.guards is not None:
            join_guards(first, nodes[1] if first is nodes[0] else nodes[0], ctx)
            again = _between(forward.node, pair.backward.node)
            assert again is not None
            first, late = again
            _move_up(first, late)
        b = ctx.builder()
        made = write_bidirectional(b, pair)
        node = made[0].producer()
        assert node is not None
        hand_out(b, pair, made, ctx.names, first)
        b.insert_before(first)
        remove_nodes([forward.node, pair.backward.node])
        return [node]

    under = " under one If" if pair.guards is not None else ""
    return Patch(f"made one bidirectional {forward.kind} of it and {pair.backward.label}{under}", edit)


def _read(pair: Pair) -> list[ir.Value | None]:
    return [value for both in pair.outputs for value in both]


def _too_slow(pair: Pair, ctx: Context) -> str | None:
    """Say why one node would not be as fast as two, by what was measured of onnxruntime 1.31 on a CPU."""
    rows = dim_of(pair.forward.x, 1)
    known = rows if isinstance(rows, int) else ctx.options.sizes.get(rows or "")
    if known != 1 or pair.forward.hidden > _WIDEST:
        said = "an unknown number of rows" if known is None else "1 row" if known == 1 else f"{known} rows"
        return f"are faster than one of both directions for {said} of width {pair.forward.hidden}"
    inputs = [(name, value) for view in pair.views for name in _JOINED if (value := view.input(name)) is not None]
    if any(constant_behind(value) is None and not (name.startswith("initial") and is_zero(value)) for name, value in inputs):
        return "have weights or initial states that would have to be joined in every run"
    if not all(_only_meet(one, other, ctx.opset) for one, other in pair.outputs):
        return "have results that would have to be taken apart in every run"
    return None


def _only_meet(one: ir.Value | None, other: ir.Value | None, opset: int) -> bool:
    if one is None and other is None:
        return True
    if one is None or other is None or len(meetings(one, other, opset)) != 1:
        return False
    return all(_one_way(value) for value in (one, other))


def _one_way(value: ir.Value) -> bool:
    """Whether there is one user of ``value``, and one of what that makes of it, up to a Concat."""
    while len(value.uses()) == 1 and not value.is_graph_output():
        node = next(iter(value.uses())).node
        if node.op_type == "Concat":
            return True
        value = node.outputs[0]
    return False


def _between(one: ir.Node, other: ir.Node) -> tuple[ir.Node, list[ir.Node]] | None:
    """Return which of two nodes comes first, and what the second needs of what comes after that; None where that is the first."""
    graph = one.graph
    assert isinstance(graph, ir.Graph)
    order = list(graph)
    first, second = (one, other) if order.index(one) < order.index(other) else (other, one)
    behind = set(nodes_behind(graph, reads(second)))
    if first in behind:
        return None
    return first, [node for node in order[order.index(first) + 1 :] if node in behind]


def _move_up(first: ir.Node, late: list[ir.Node]) -> None:
    graph = first.graph
    assert isinstance(graph, ir.Graph)
    graph.remove(late)
    graph.insert_before(first, late)


RULE = Rule("both-directions", "direction", "pair", check)
