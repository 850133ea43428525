"""An Identity protects an outer product from onnx's shape inference, which would reject it.

    Mul(Unsqueeze(a, 1), Unsqueeze(b, 0))    ->    Mul(Identity(Unsqueeze(a, 1)), Unsqueeze(b, 0))      a [3], b [2]

From opset 14 on, the data propagation of onnx 1.23 follows the elements of vectors of known length, also through Unsqueeze. It
still treats them as vectors and rejects a product of 3 elements by 2. It does not follow an Identity, which onnxruntime removes.
Rules would remove the Identity as well, so bodies of loops lose it before the first rule and get it back after the last.

Works around ONNX-OUTER-PRODUCT.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.marks import PARTING_IDENTITY
from rewrites.graph.replace import replace_value
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import is_loop

__all__ = ["part_outer_products", "rejoin_outer_products"]


_SINCE = 14
_MEET = frozenset({"Add", "Mul", "Sub"})
_HAND_ON = frozenset({"Cast", "Squeeze", "Unsqueeze"})
_GO_THROUGH = _HAND_ON | _MEET | {"Concat", "Gather", "Slice"}


def part_outer_products(ctx: Context) -> None:
    """Add the Identities all over the model."""
    if ctx.opset < _SINCE:
        return
    lengths: dict[ir.Value, int | None] = {}
    for node in list(all_nodes(ctx.model.graph)):
        if node.op_type not in _MEET or node.domain != "" or len(node.inputs) != 2:
            continue
        left, right = node.inputs
        found = _length(left, lengths), _length(right, lengths)
        if None in found or 1 in found or found[0] == found[1]:
            continue
        place, value = next(((i, one) for i, one in enumerate((left, right)) if one is not None and _goes_through(one)), (0, left))
        assert value is not None
        b = ctx.builder()
        copy = b.op("Identity", value)
        copy.type, copy.shape = value.type, value.shape
        named = PARTING_IDENTITY.take(node)
        if named is not None and named[0] == place:
            _, copy.name, b.nodes[0].name = named
        b.insert_before(node)
        node.replace_input_with(place, copy)
        lengths[node.outputs[0]] = None


def rejoin_outer_products(ctx: Context) -> None:
    """Remove the Identities of ``part_outer_products`` from bodies of loops, and remember their names."""
    for owner in list(all_nodes(ctx.model.graph)):
        for body in node_graphs(owner) if is_loop(owner) else ():
            for node in [one for one in body if one.op_type == "Identity" and one.domain == ""]:
                copy, source = node.outputs[0], node.inputs[0]
                users = list(copy.uses())
                if source is None or len(users) != 1 or copy.is_graph_output() or not (node.name or "").startswith("node_Identity"):
                    continue
                user, place = users[0]
                if user.op_type in _MEET and user.domain == "" and user.graph is body and _goes_through(source):
                    PARTING_IDENTITY.put(user, (place, copy.name, node.name))
                    replace_value(copy, source, ctx.names)
                    body.remove(node, safe=True)


def _goes_through(value: ir.Value) -> bool:
    producer = value.producer()
    return producer is not None and producer.domain == "" and producer.op_type in _GO_THROUGH


def _length(value: ir.Value | None, lengths: dict[ir.Value, int | None]) -> int | None:
    """Return the number of elements that onnx would follow, or None."""
    if value is None:
        return None
    if value not in lengths:
        lengths[value] = None
        lengths[value] = _found(value, lengths)
    return lengths[value]


def _found(value: ir.Value, lengths: dict[ir.Value, int | None]) -> int | None:
    dims = None if value.shape is None else value.shape.dims
    if dims is not None and len(dims) < 2:
        size = dims[0] if dims else 1
        return size if isinstance(size, int) else None
    node = value.producer()
    if node is None or not _goes_through(value):
        return None
    parts = [_length(one, lengths) for one in node.inputs[: 1 if node.op_type not in (*_MEET, "Concat") else None]]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or node.op_type in ("Gather", "Slice"):
        return None
    return sum(known) if node.op_type == "Concat" else max(known)
