"""Simplifies nodes, such as those of an unrolled loop. Several rules share the functions of this file.

``clean_up`` does the following:

- It replaces nodes with constant results by constants, and Ifs with constant conditions by one branch.
- It removes copies and unread nodes.
- It runs equal nodes only once.
- If a node reads the value of a step from a stack of all steps, it lets the node read this value directly.

The following nodes count as copies. Their users then read x instead:

    Identity (x)      Cast <to = the type of x> (x)      Cast <to = bool> (Cast <to = int64> (x)) of a bool x
    Add (x, 0)        Sub (x, 0)                         Squeeze (Unsqueeze (x, a), a)

If an Add of 0.0 is removed, -0.0 no longer becomes 0.0. onnxruntime removes such an Add too when it optimises a model.
"""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic, unread_nodes
from rewrites.analysis.value_numbering import attribute_key
from rewrites.cleanup.constant_branches import inline_decided, is_if
from rewrites.cleanup.folding import fold, put_constants
from rewrites.cleanup.stacking import read_steps
from rewrites.graph.context import Context
from rewrites.graph.dims import refined, without_names
from rewrites.graph.names import Names
from rewrites.graph.node_inference import infer_afresh, put_shapes
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import const_array, producer_of, rank_of, static_dims
from rewrites.graph.walk import node_graphs
from rewrites.loops import is_loop
from rewrites.ops.versions import axes_of

__all__ = ["clean_up", "copies_among", "drop_copies", "drop_unread", "equal_nodes", "merge_equal"]

_PLAIN = ("Identity", "Cast")
_OPPOSITE = {"Squeeze": "Unsqueeze", "Unsqueeze": "Squeeze"}


def clean_up(graph: ir.Graph, nodes: Sequence[ir.Node], ctx: Context) -> list[ir.Node]:
    """Simplify ``nodes`` of ``graph`` and the branches in them until nothing changes.

    Return the remaining nodes, in order.
    """
    allowance = ctx.options.unroll.bytes
    nodes, changed = list(nodes), True
    while changed:
        folded = _fold(nodes, allowance, ctx)
        allowance -= folded
        drop_copies(copies_among(_in(graph, nodes), ctx.opset), ctx.names, ctx.opset)
        nodes, decided = inline_decided(_in(graph, nodes), ctx)
        learned = _infer(nodes, ctx)
        changed = bool(decided or (folded and learned))
    for node in nodes:
        for branch in node_graphs(node) if is_if(node) else ():
            clean_up(branch, list(branch), ctx)
    read_steps(nodes, ctx)
    merge_equal(equal_nodes(nodes), ctx.names)
    remove_nodes(unread_nodes(graph))
    return _in(graph, nodes)


def _fold(nodes: Sequence[ir.Node], allowance: int, ctx: Context) -> int:
    """Replace nodes that have constant results by constants. Return the number of bytes of the constants.

    If the constants exceed ``allowance`` bytes in all, change nothing and return 0.
    """
    inner = (node for node in nodes if not any(value.is_graph_output() for value in node.outputs))
    folded = fold(inner, ctx)
    put_shapes(folded.learned)
    size = sum(folded.known[value].nbytes for node in folded.done for value in node.outputs if value in folded.known)
    if not folded.done or size > allowance:
        return 0
    put_constants(folded, ctx)
    return max(1, size)


def _in(graph: ir.Graph, nodes: Iterable[ir.Node]) -> list[ir.Node]:
    return [node for node in nodes if node.graph is graph]


def _infer(nodes: Sequence[ir.Node], ctx: Context) -> bool:
    """Infer shapes again for those results of ``nodes`` that have unknown sizes.

    Return True if at least one shape became complete.
    """
    learned = False
    for node in nodes:
        vague = [value for value in node.outputs if static_dims(value) is None]
        shapes = infer_afresh(node, ctx.infer) if vague and not node_graphs(node) else {}
        for value in vague if shapes else ():
            value.shape = refined(without_names(shapes[value]), value.shape, shapes[value])
            learned = learned or static_dims(value) is not None
    return learned


def copies_among(nodes: Iterable[ir.Node], opset: int) -> list[ir.Node]:
    """Return those copies among ``nodes`` that can be removed or bypassed."""
    return [
        node for node in nodes if (source := _copied(node, opset)) is not None and (_may_go(node, source) or _is_worth_it(node))
    ]


def _copied(node: ir.Node, opset: int) -> ir.Value | None:
    """Return the value that ``node`` copies; None if ``node`` is not a copy."""
    source = node.inputs[0] if node.domain == "" and node.inputs else None
    if source is None:
        return None
    inner = producer_of(source)
    match node.op_type:
        case "Identity":
            return source
        case "Cast":
            return _cast(node, source, inner)
        case "Add":
            terms = (node.inputs, node.inputs[::-1])
            return next((term for term, other in terms if term is not None and _is_neutral_zero(other, term)), None)
        case "Sub":
            return source if _is_neutral_zero(node.inputs[1], source) else None
        case "Squeeze" | "Unsqueeze" if inner is not None and inner.op_type == _OPPOSITE[node.op_type]:
            return _there_and_back(node, inner, opset)
    return None


def _cast(node: ir.Node, source: ir.Value, inner: ir.Node | None) -> ir.Value | None:
    kind = node.attributes["to"].as_int()
    if source.dtype is not None and kind == source.dtype.value:
        return source
    if kind != ir.DataType.BOOL or inner is None or inner.op_type != "Cast":
        return None
    first = inner.inputs[0]
    return first if first is not None and first.dtype == ir.DataType.BOOL else None


def _is_neutral_zero(zero: ir.Value | None, beside: ir.Value) -> bool:
    """Return True if ``zero`` is a constant 0, and adding it to ``beside`` does not change the shape."""
    array, rank = const_array(zero, limit=64), rank_of(beside)
    if array is None or array.dtype.kind not in "iuf" or array.size != 1 or np.any(array != 0):
        return False
    return array.ndim == 0 or (rank is not None and array.ndim <= rank)


def _there_and_back(node: ir.Node, inner: ir.Node, opset: int) -> ir.Value | None:
    """Return x if ``node`` is Squeeze (Unsqueeze (x, a), a) or Unsqueeze (Squeeze (x, a), a), else None.

    ``inner`` is the producer of the operand of ``node``.
    """
    first = inner.inputs[0]
    rank = None if first is None else rank_of(first)
    there = None if rank is None else axes_of(inner, opset, rank)
    if rank is None or not isinstance(there, tuple):
        return None
    back = axes_of(node, opset, rank + (1 if inner.op_type == "Unsqueeze" else -1) * len(there))
    return first if isinstance(back, tuple) and sorted(there) == sorted(back) else None


def _may_go(node: ir.Node, source: ir.Value) -> bool:
    """Return True if the copy ``node`` can be removed, because ``source`` can replace it everywhere.

    If the graph returns the copy, this is only possible if the graph can return ``source`` instead. It cannot if ``source`` is an
    input, a value of another graph, or already an output.
    """
    producer = source.producer()
    may_return = producer is not None and producer.graph is node.graph and not source.is_graph_output()
    return may_return or not node.outputs[0].is_graph_output()


def _is_worth_it(node: ir.Node) -> bool:
    """Return True if it pays to bypass ``node``, a copy that the graph must return."""
    return node.op_type not in _PLAIN or bool(node.outputs[0].uses())


def drop_copies(copies: Iterable[ir.Node], names: Names, opset: int) -> None:
    """Let the users of ``copies``, which ``copies_among`` returned, read the sources instead.

    Remove each copy, unless the graph must return it.
    """
    for node in copies:
        source, copy = _copied(node, opset), node.outputs[0]
        if source is None:  # its source was a copy itself
            continue
        if node.op_type in _PLAIN and not _may_go(node, source):
            for user, index in copy.uses():
                user.replace_input_with(index, source)
            continue
        if source.shape is None and source.type is not None and source.producer() is not None:
            source.shape = copy.shape
        replace_value(copy, source, names)
        remove_nodes([node])


def merge_equal(twins: Iterable[tuple[ir.Node, ir.Node]], names: Names) -> None:
    """Replace the first node of each pair by the second. ``twins``: the pairs that `equal_nodes` returned."""
    pairs = list(twins)
    for node, earlier in pairs:
        for value, same in zip(node.outputs, earlier.outputs, strict=True):
            replace_value(value, same, names)
    remove_nodes([node for node, _ in pairs])


def equal_nodes(nodes: Iterable[ir.Node]) -> list[tuple[ir.Node, ir.Node]]:
    """Return a pair (node, earlier node) for each of ``nodes`` that repeats an earlier one.

    ``nodes`` belong to one graph and are in order.
    """
    first: dict[Hashable, ir.Node] = {}
    same: dict[ir.Value, ir.Value] = {}
    twins = []
    for node in nodes:
        if node_graphs(node) or not is_deterministic(node):
            continue
        inputs = tuple(None if value is None else id(same.get(value, value)) for value in node.inputs)
        attributes = frozenset((name, attribute_key(attribute)) for name, attribute in node.attributes.items())
        asked = tuple(bool(value.name) for value in node.outputs)
        earlier = first.setdefault((node.domain, node.op_type, node.overload, asked, inputs, attributes), node)
        if earlier is not node and not any(value.is_graph_output() for value in node.outputs):
            twins.append((node, earlier))
            same.update(zip(node.outputs, earlier.outputs, strict=True))
    return twins


def drop_unread(graph: ir.Graph) -> None:
    """Remove the unread nodes of ``graph`` and of the branches in it, but not of loop bodies."""
    for node in graph:
        if not is_loop(node):
            for branch in node_graphs(node):
                drop_unread(branch)
    remove_nodes(unread_nodes(graph))
