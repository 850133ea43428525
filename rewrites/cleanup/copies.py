"""Copies of values, and reading what they copy instead.

    Identity (x)      Cast <to = the type of x> (x)      Cast <to = bool> (Cast <to = int64> (x)), x a bool
    Add (x, 0)        Sub (x, 0)                         Squeeze (Unsqueeze (x, a), a)

Adding 0.0 makes one zero of the two; onnxruntime leaves such sums out too when it optimises a model.
"""

from collections.abc import Iterable

import numpy as np
import onnx_ir as ir

from rewrites.graph.names import Names
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import const_array, rank_of
from rewrites.ops.versions import axes_of

__all__ = ["copies_among", "drop_copies"]

_PLAIN = ("Identity", "Cast")
_OPPOSITE = {"Squeeze": "Unsqueeze", "Unsqueeze": "Squeeze"}


def copies_among(nodes: Iterable[ir.Node], opset: int) -> list[ir.Node]:
    """Return those of ``nodes`` that copy a value whose users could read it itself."""
    return [
        node for node in nodes if (source := _copied(node, opset)) is not None and (_may_go(node, source) or _is_worth_it(node))
    ]


def drop_copies(copies: Iterable[ir.Node], names: Names, opset: int) -> None:
    """Let what reads ``copies``, as ``copies_among`` gives them, read what they copy, and remove those that may go."""
    for node in copies:
        source, copy = _copied(node, opset), node.outputs[0]
        if source is None:  # what it copied was a copy itself
            continue
        if node.op_type in _PLAIN and not _may_go(node, source):
            for user, index in copy.uses():
                user.replace_input_with(index, source)
            continue
        if source.shape is None and source.type is not None and source.producer() is not None:
            source.shape = copy.shape
        replace_value(copy, source, names)
        remove_nodes([node])


def _copied(node: ir.Node, opset: int) -> ir.Value | None:
    """Return the value that ``node`` copies, or None."""
    if node.domain != "" or node.inputs[:1] in ((), (None,)):
        return None
    source = node.inputs[0]
    assert source is not None
    inner = source.producer()
    match node.op_type:
        case "Identity":
            return source
        case "Cast":
            return _cast(node, source, inner)
        case "Add":
            return next(
                (one for one, other in (node.inputs, node.inputs[::-1]) if one is not None and _is_nothing(other, one)), None
            )
        case "Sub":
            return source if _is_nothing(node.inputs[1], source) else None
        case "Squeeze" | "Unsqueeze" if inner is not None and inner.domain == "" and inner.op_type == _OPPOSITE[node.op_type]:
            return _there_and_back(node, inner, opset)
    return None


def _cast(node: ir.Node, source: ir.Value, inner: ir.Node | None) -> ir.Value | None:
    kind = node.attributes["to"].as_int()
    if source.dtype is not None and kind == source.dtype.value:
        return source
    if kind != ir.DataType.BOOL or inner is None or inner.op_type != "Cast" or inner.domain != "":
        return None
    first = inner.inputs[0]
    return first if first is not None and first.dtype == ir.DataType.BOOL else None


def _is_nothing(zero: ir.Value | None, beside: ir.Value) -> bool:
    """Whether ``zero`` is a constant 0 that changes neither ``beside`` nor its shape."""
    array, rank = const_array(zero, limit=64), rank_of(beside)
    if array is None or array.dtype.kind not in "iuf" or array.size != 1 or np.any(array != 0):
        return False
    return array.ndim == 0 or (rank is not None and array.ndim <= rank)


def _there_and_back(node: ir.Node, inner: ir.Node, opset: int) -> ir.Value | None:
    """Return x of Squeeze (Unsqueeze (x, a), a), or of these two the other way round."""
    first = inner.inputs[0]
    rank = None if first is None else rank_of(first)
    there = None if rank is None else axes_of(inner, opset, rank)
    if rank is None or not isinstance(there, tuple):
        return None
    back = axes_of(node, opset, rank + (1 if inner.op_type == "Unsqueeze" else -1) * len(there))
    return first if isinstance(back, tuple) and sorted(there) == sorted(back) else None


def _may_go(node: ir.Node, source: ir.Value) -> bool:
    return not node.outputs[0].is_graph_output() or _may_return(node, source)


def _is_worth_it(node: ir.Node) -> bool:
    """Whether something is gained though a copy must stay: an Identity is, and what else reads it reads its source."""
    return node.op_type not in _PLAIN or bool(node.outputs[0].uses())


def _may_return(node: ir.Node, source: ir.Value) -> bool:
    producer = source.producer()
    return producer is not None and producer.graph is node.graph and not source.is_graph_output()
