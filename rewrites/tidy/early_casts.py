"""A Cast between a Transpose and a MatMul goes before the Transpose, since onnxruntime may not survive it there.

    MatMul(Cast(Transpose <perm = [1, 0, 2]> (x)), w)    ->    MatMul(Transpose <perm = [1, 0, 2]> (Cast(x)), w)

onnxruntime swaps the two itself to fuse the Transpose into the product, and ends the process with a segmentation fault where
the Transpose moves the first axis behind others but the last, or last, and the other operand is of another rank. Casts between
any types do it, and what onnxruntime drops or fuses may stand between: Identity, Slice, Reshape and the like, and sums and products
with one number, which go along with the Cast. Equal ranks are left alone.

Works round ORT-CAST-AFTER-TRANSPOSE.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes
from rewrites.graph.values import rank_of
from rewrites.graph.walk import all_nodes
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.tidy.moved_operands import Link, is_product, link_above, transposes_axes

__all__ = ["RULE", "check"]


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Find products that read a Transpose by way of a Cast."""
    readers = [Link(node, place) for node in all_nodes(model.graph) if _is_fragile(node) for place in range(len(node.inputs))]
    if not any(_to_turn(reader)[1] for reader in readers):
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        moved: dict[ir.Value, ir.Value] = {}
        for node in list(all_nodes(model.graph)):
            for place in range(len(node.inputs)) if _is_fragile(node) else ():
                _turn(*_to_turn(Link(node, place)), moved, ctx)
        return []

    return Patch("casts before it transposes, for products that onnxruntime may not survive otherwise", edit)


def _is_fragile(node: ir.Node) -> bool:
    return is_product(node) and _ranks_differ(*node.inputs)


def _ranks_differ(left: ir.Value | None, right: ir.Value | None) -> bool:
    ranks = [None if value is None else rank_of(value) for value in (left, right)]
    return None in ranks or ranks[0] != ranks[1]


def _to_turn(reader: Link) -> tuple[Link, list[Link]]:
    """Return the nodes from the first Cast up to the last Transpose above it, and who reads the first; none without both."""
    chain, transposes = list[Link](), 0
    below, link = reader, link_above(reader.source)
    while link is not None and link.node.graph is reader.node.graph:
        if link.is_cast and not chain:
            reader = below
        if chain or link.is_cast:
            chain.append(link)
            if transposes_axes(link):
                transposes = len(chain)
        below, link = link, link_above(link.source)
    return reader, chain[:transposes]


def _turn(reader: Link, chain: list[Link], moved: dict[ir.Value, ir.Value], ctx: Context) -> None:
    if not chain:
        return
    old = reader.source
    assert old is not None
    if old not in moved:
        moved[old] = _reordered(chain[::-1], ctx)
    reader.node.replace_input_with(reader.place, moved[old])
    _drop([link.node for link in chain])


def _reordered(chain: list[Link], ctx: Context) -> ir.Value:
    """Write the nodes of ``chain`` again, those that work on numbers first; the last one of it stands there still."""
    b, value = ctx.builder(), chain[0].source
    assert value is not None
    dtype = value.dtype
    for link in sorted(chain, key=lambda one: one.moves):
        inputs = list(link.node.inputs)
        inputs[link.place] = value
        made = b.like(link.node, inputs)[0]
        dtype = dtype if link.moves else link.node.outputs[0].dtype
        made.type = made.type if dtype is None else ir.TensorType(dtype)
        if link.moves:
            made.shape = link.node.outputs[0].shape if made.shape is None else made.shape
        else:
            made.shape = value.shape
        value = made
    b.insert_before(chain[-1].node)
    return value


def _drop(nodes: list[ir.Node]) -> None:
    """Remove ``nodes``, each of which reads the next one, as far as nobody reads them."""
    for node in nodes:
        if any(value.uses() or value.is_graph_output() for value in node.outputs):
            return
        remove_nodes([node])


RULE = Rule("early-casts", "tidy", "model", check, use="always")
