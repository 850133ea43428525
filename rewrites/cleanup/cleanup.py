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
from rewrites.cleanup.constant_branches import inline_ifs_among, is_if
from rewrites.cleanup.folding import fold, put_constants
from rewrites.cleanup.stacking import read_steps_directly
from rewrites.graph.context import Context
from rewrites.graph.dims import refined, without_names
from rewrites.graph.names import Names
from rewrites.graph.node_inference import infer_afresh, put_shapes
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import const_array, producer_of, rank_of, static_dims
from rewrites.graph.walk import node_graphs
from rewrites.loops import is_loop
from rewrites.ops.versions import axes_of

__all__ = ["bypass_copies", "clean_up", "equal_nodes", "find_copies", "merge_equal_nodes", "remove_unread"]

_PLAIN = ("Identity", "Cast")
_OPPOSITE = {"Squeeze": "Unsqueeze", "Unsqueeze": "Squeeze"}


def clean_up(graph: ir.Graph, nodes: Sequence[ir.Node], ctx: Context) -> list[ir.Node]:
    """Simplify ``nodes`` of ``graph``, and the branches of Ifs among them, until nothing changes.

    Return the remaining nodes, in order.
    """
    allowance = ctx.options.unroll.bytes
    nodes, changed = list(nodes), True
    while changed:
        folded = _fold_constants(nodes, allowance, ctx)
        allowance -= folded
        bypass_copies(find_copies(_still_in(graph, nodes), ctx.opset), ctx.names, ctx.opset)
        nodes, decided = inline_ifs_among(_still_in(graph, nodes), ctx)
        learned = _infer_unknown_shapes(nodes, ctx)
        changed = bool(decided or (folded and learned))
    for node in nodes:
        for branch in node_graphs(node) if is_if(node) else ():
            clean_up(branch, list(branch), ctx)
    read_steps_directly(nodes, ctx)
    merge_equal_nodes(equal_nodes(nodes), ctx.names)
    remove_nodes(unread_nodes(graph))
    return _still_in(graph, nodes)


def _fold_constants(nodes: Sequence[ir.Node], max_bytes: int, ctx: Context) -> int:
    """Replace nodes that have constant results by constants. Return the total bytes of these constants.

    If the total exceeds ``max_bytes``, change nothing and return 0.
    """
    candidates = (node for node in nodes if not any(value.is_graph_output() for value in node.outputs))
    folded = fold(candidates, ctx)
    put_shapes(folded.inferred)
    bytes_used = sum(folded.constants[value].nbytes for node in folded.nodes for value in node.outputs if value in folded.constants)
    if not folded.nodes or bytes_used > max_bytes:
        return 0
    put_constants(folded, ctx)
    return max(1, bytes_used)


def _still_in(graph: ir.Graph, nodes: Iterable[ir.Node]) -> list[ir.Node]:
    """Return those ``nodes`` that are in ``graph``, and have not been removed or moved."""
    return [node for node in nodes if node.graph is graph]


def _infer_unknown_shapes(nodes: Sequence[ir.Node], ctx: Context) -> bool:
    """Repeat shape inference for those results of ``nodes`` that have unknown sizes.

    Return True if at least one shape became complete.
    """
    completed = False
    for node in nodes:
        unknown = [value for value in node.outputs if static_dims(value) is None]
        shapes = infer_afresh(node, ctx.infer) if unknown and not node_graphs(node) else {}
        for value in unknown if shapes else ():
            value.shape = refined(without_names(shapes[value]), value.shape, shapes[value])
            completed = completed or static_dims(value) is not None
    return completed


def find_copies(nodes: Iterable[ir.Node], opset: int) -> list[ir.Node]:
    """Return the copies among ``nodes`` that can be removed, or that their users can bypass."""
    return [
        node
        for node in nodes
        if (source := _copied_value(node, opset)) is not None and (_can_be_removed(node, source) or _is_worth_bypassing(node))
    ]


def _copied_value(node: ir.Node, opset: int) -> ir.Value | None:
    """Return the value that ``node`` copies; None if ``node`` is not a copy."""
    source = node.inputs[0] if node.domain == "" and node.inputs else None
    if source is None:
        return None
    inner = producer_of(source)
    match node.op_type:
        case "Identity":
            return source
        case "Cast":
            return _value_before_casts(node, source, inner)
        case "Add":
            terms = (node.inputs, node.inputs[::-1])
            return next((term for term, other in terms if term is not None and _is_neutral_zero(other, term)), None)
        case "Sub":
            return source if _is_neutral_zero(node.inputs[1], source) else None
        case "Squeeze" | "Unsqueeze" if inner is not None and inner.op_type == _OPPOSITE[node.op_type]:
            return _value_before_pair(node, inner, opset)
    return None


def _value_before_casts(node: ir.Node, source: ir.Value, inner: ir.Node | None) -> ir.Value | None:
    """Return the value that the Cast ``node`` copies, alone or together with the Cast ``inner``, or None.

    ``source``: the operand of ``node``. ``inner``: the producer of ``source``.
    """
    target_type = node.attributes["to"].as_int()
    if source.dtype is not None and target_type == source.dtype.value:
        return source
    if target_type != ir.DataType.BOOL or inner is None or inner.op_type != "Cast":
        return None
    source_of_inner = inner.inputs[0]
    return source_of_inner if source_of_inner is not None and source_of_inner.dtype == ir.DataType.BOOL else None


def _is_neutral_zero(zero: ir.Value | None, term: ir.Value) -> bool:
    """Return True if ``zero`` is a constant 0, and adding it to ``term`` keeps the shape of ``term``."""
    array, rank = const_array(zero, limit=64), rank_of(term)
    if array is None or array.dtype.kind not in "iuf" or array.size != 1 or np.any(array != 0):
        return False
    return array.ndim == 0 or (rank is not None and array.ndim <= rank)


def _value_before_pair(node: ir.Node, inner: ir.Node, opset: int) -> ir.Value | None:
    """Return x if ``node`` is Squeeze (Unsqueeze (x, a), a) or Unsqueeze (Squeeze (x, a), a), else None.

    ``inner``: the producer of the operand of ``node``.
    """
    value = inner.inputs[0]
    rank = None if value is None else rank_of(value)
    inner_axes = None if rank is None else axes_of(inner, opset, rank)
    if rank is None or not isinstance(inner_axes, tuple):
        return None
    axes = axes_of(node, opset, rank + (1 if inner.op_type == "Unsqueeze" else -1) * len(inner_axes))
    return value if isinstance(axes, tuple) and sorted(inner_axes) == sorted(axes) else None


def _can_be_removed(node: ir.Node, source: ir.Value) -> bool:
    """Return True if the copy ``node`` can be removed, because ``source`` can replace it everywhere.

    If the graph returns the copy, it must be able to return ``source`` instead. It cannot if ``source`` is an input, a value of
    another graph, or already an output.
    """
    producer = source.producer()
    may_return = producer is not None and producer.graph is node.graph and not source.is_graph_output()
    return may_return or not node.outputs[0].is_graph_output()


def _is_worth_bypassing(node: ir.Node) -> bool:
    """Return True if something is gained when users bypass ``node``, a copy that the graph must return."""
    return node.op_type not in _PLAIN or bool(node.outputs[0].uses())


def bypass_copies(copies: Iterable[ir.Node], names: Names, opset: int) -> None:
    """Let the users of ``copies``, which ``find_copies`` returned, read the sources instead.

    Remove each copy that the graph need not return.
    """
    for node in copies:
        source, copy = _copied_value(node, opset), node.outputs[0]
        if source is None:  # its source was a copy itself
            continue
        if node.op_type in _PLAIN and not _can_be_removed(node, source):
            for user, index in copy.uses():
                user.replace_input_with(index, source)
            continue
        if source.shape is None and source.type is not None and source.producer() is not None:
            source.shape = copy.shape
        replace_value(copy, source, names)
        remove_nodes([node])


def merge_equal_nodes(equal_pairs: Iterable[tuple[ir.Node, ir.Node]], names: Names) -> None:
    """Replace the first node of each pair by the second node.

    ``equal_pairs``: the pairs that ``equal_nodes`` returned.
    """
    pairs = list(equal_pairs)
    for node, earlier in pairs:
        for value, replacement in zip(node.outputs, earlier.outputs, strict=True):
            replace_value(value, replacement, names)
    remove_nodes([node for node, _ in pairs])


def equal_nodes(nodes: Iterable[ir.Node]) -> list[tuple[ir.Node, ir.Node]]:
    """Return a pair (node, earlier node) for each of ``nodes`` that repeats an earlier node.

    ``nodes`` belong to one graph and are in order.
    """
    first: dict[Hashable, ir.Node] = {}
    replacements: dict[ir.Value, ir.Value] = {}
    equal_pairs = []
    for node in nodes:
        if node_graphs(node) or not is_deterministic(node):
            continue
        inputs = tuple(None if value is None else id(replacements.get(value, value)) for value in node.inputs)
        attributes = frozenset((name, attribute_key(attribute)) for name, attribute in node.attributes.items())
        present = tuple(bool(value.name) for value in node.outputs)
        earlier = first.setdefault((node.domain, node.op_type, node.overload, present, inputs, attributes), node)
        if earlier is not node and not any(value.is_graph_output() for value in node.outputs):
            equal_pairs.append((node, earlier))
            replacements.update(zip(node.outputs, earlier.outputs, strict=True))
    return equal_pairs


def remove_unread(graph: ir.Graph) -> None:
    """Remove the unread nodes of ``graph`` and of branches of Ifs in it, but not those of loop bodies."""
    for node in graph:
        if not is_loop(node):
            for branch in node_graphs(node):
                remove_unread(branch)
    remove_nodes(unread_nodes(graph))
