"""Inserts an Identity into outer products, because onnx's shape inference would reject them.

    Mul(Unsqueeze(a, 1), Unsqueeze(b, 0))    ->    Mul(Identity(Unsqueeze(a, 1)), Unsqueeze(b, 0))      a [3], b [2]

From opset 14 on, the data propagation of onnx 1.23 tracks the elements of vectors of known length. After an Unsqueeze, it still
treats the result as a vector. So it rejects a product of 3 elements and 2 elements, although the two tensors can be
multiplied. It does not track elements through an Identity.

onnxruntime removes the Identity when it loads the model. Rules should not see it, so it is removed from loop bodies before the
first rule and inserted again after the last rule.

Works around ONNX-OUTER-PRODUCT.
"""

from collections.abc import Callable, Mapping

import onnx_ir as ir

from rewrites.analysis.dataflow import Domain
from rewrites.graph.context import Context
from rewrites.graph.marks import PARTING_IDENTITY
from rewrites.graph.replace import replace_value
from rewrites.graph.values import producer_of
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import is_loop

__all__ = ["insert_identities", "remove_identities"]


_SINCE = 14
_BINARY = frozenset({"Add", "Mul", "Sub"})
_UNARY = frozenset({"Cast", "Squeeze", "Unsqueeze"})
_TRACKED = _UNARY | _BINARY | {"Concat", "Gather", "Slice"}


def insert_identities(ctx: Context) -> None:
    """Insert an Identity before an operand of each outer product that onnx would otherwise reject."""
    if ctx.opset < _SINCE:
        return
    lengths = _Lengths()
    for node in list(all_nodes(ctx.model.graph)):
        if node.op_type not in _BINARY or node.domain != "" or len(node.inputs) != 2:
            continue
        left, right = node.inputs
        operand_lengths = {lengths.of(left), lengths.of(right)}
        if operand_lengths & {None, 1} or len(operand_lengths) == 1:
            continue
        operands = [(i, side) for i, side in enumerate((left, right)) if side is not None]
        position, value = next((operand for operand in operands if _is_tracked(operand[1])), operands[0])
        b = ctx.builder()
        copy = b.op("Identity", value)
        copy.type, copy.shape = value.type, value.shape
        former_names = PARTING_IDENTITY.take(node)
        if former_names is not None and former_names[0] == position:
            _, copy.name, b.nodes[0].name = former_names
        b.insert_before(node)
        node.replace_input_with(position, copy)
        lengths = _Lengths()


def remove_identities(ctx: Context) -> None:
    """Remove from bodies of loops the Identities that ``insert_identities`` inserted.

    Record their names, so that ``insert_identities`` can insert them again with the same names.
    """
    for owner in list(all_nodes(ctx.model.graph)):
        for body in node_graphs(owner) if is_loop(owner) else ():
            for node in [inner for inner in body if inner.op_type == "Identity" and inner.domain == ""]:
                copy, source = node.outputs[0], node.inputs[0]
                users = list(copy.uses())
                if source is None or len(users) != 1 or copy.is_graph_output() or not (node.name or "").startswith("node_Identity"):
                    continue
                user, position = users[0]
                if user.op_type in _BINARY and user.domain == "" and user.graph is body and _is_tracked(source):
                    PARTING_IDENTITY.put(user, (position, copy.name, node.name))
                    replace_value(copy, source, ctx.names)
                    body.remove(node, safe=True)


def _is_tracked(value: ir.Value) -> bool:
    """Return True if onnx's data propagation tracks elements through the node that computes ``value``."""
    return producer_of(value, *_TRACKED) is not None


def _combined_length(lengths: "_Lengths", node: ir.Node) -> int | None:
    """Return the number of elements of the result of a Concat or of an elementwise operator, or None."""
    known = [length for value in node.inputs if (length := lengths.of(value)) is not None]
    return None if len(known) < len(node.inputs) else sum(known) if node.op_type == "Concat" else max(known)


_TRANSFER: Mapping[str, Callable[["_Lengths", ir.Node], int | None]] = {
    **dict.fromkeys(_UNARY, lambda lengths, node: lengths.operand(node, 0)),
    **dict.fromkeys((*_BINARY, "Concat"), _combined_length),
}


class _Lengths(Domain[int]):
    """Computes the number of elements that onnx's data propagation tracks for a value, or None."""

    transfer = _TRANSFER

    def read(self, value: ir.Value) -> int | None:
        """Return the number of elements of ``value`` if it is a scalar or a vector.

        For any other value, compute the number from the operands of its node.
        """
        dims = None if value.shape is None else value.shape.dims
        if dims is None or len(dims) > 1:
            return super().read(value)
        size = dims[0] if dims else 1
        return size if isinstance(size, int) else None
