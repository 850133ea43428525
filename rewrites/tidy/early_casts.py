"""Swaps a Transpose and the Cast after it if a MatMul follows, to avoid a crash of onnxruntime.

    MatMul(Cast(Transpose <perm = [1, 0, 2]> (x)), w)    ->    MatMul(Transpose <perm = [1, 0, 2]> (Cast(x)), w)

onnxruntime itself swaps Cast and Transpose to fuse the Transpose into the product. If the ranks of the operands differ and the
Transpose moves the first axis to any position except the second to last, onnxruntime then crashes with a segmentation fault. All
element types are affected.

The Transpose and the product may also be connected through nodes that onnxruntime drops or fuses: nodes that only move numbers,
such as Identity, Slice and Reshape, and elementwise sums and products with a single number. The sums and products move before the
Transpose, like the Cast.

Works around ORT-CAST-AFTER-TRANSPOSE.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes
from rewrites.graph.values import is_read, rank_of
from rewrites.graph.walk import all_nodes
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.tidy.moved_operands import Link, is_product, link_above, transposes_axes

__all__ = ["RULE", "check"]


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if a product whose operand ranks may differ reads a Transpose through a Cast."""
    readers = [Link(node, index) for node in all_nodes(model.graph) if _is_fragile(node) for index in range(len(node.inputs))]
    if not any(_find_chain(reader)[1] for reader in readers):
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        replacements: dict[ir.Value, ir.Value] = {}
        for node in list(all_nodes(model.graph)):
            for index in range(len(node.inputs)) if _is_fragile(node) else ():
                _reorder(*_find_chain(Link(node, index)), replacements, ctx)
        return []

    return Patch("casts before it transposes, for products on which onnxruntime may crash otherwise", edit)


def _is_fragile(node: ir.Node) -> bool:
    return is_product(node) and _ranks_differ(*node.inputs)


def _ranks_differ(left: ir.Value | None, right: ir.Value | None) -> bool:
    ranks = [None if value is None else rank_of(value) for value in (left, right)]
    return None in ranks or ranks[0] != ranks[1]


def _find_chain(reader: Link) -> tuple[Link, list[Link]]:
    """Find the nodes to reorder on the path up from ``reader``, the Link for one operand of a product.

    The path leads towards the inputs of the model. Its first Cast is the one that is nearest to the product.

    Returns:
        A pair: the Link that reads the first Cast, and the list of Links from this Cast up to the last Transpose on the path. The
        list is empty if the path has no Cast, or no Transpose after the Cast.
    """
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


def _reorder(reader: Link, chain: list[Link], replacements: dict[ir.Value, ir.Value], ctx: Context) -> None:
    if not chain:
        return
    old = reader.source
    assert old is not None
    if old not in replacements:
        replacements[old] = _write_reordered(chain[::-1], ctx)
    reader.node.replace_input_with(reader.index, replacements[old])
    _remove_unread([link.node for link in chain])


def _write_reordered(chain: list[Link], ctx: Context) -> ir.Value:
    """Insert reordered copies of the nodes of ``chain``, and return the result of the last copy.

    The nodes that change numbers, such as Cast, come first. The nodes that only move numbers follow.
    """
    b, value = ctx.builder(), chain[0].source
    assert value is not None
    dtype = value.dtype
    for link in sorted(chain, key=lambda link: link.moves):
        inputs = list(link.node.inputs)
        inputs[link.index] = value
        result = b.like(link.node, inputs)[0]
        dtype = dtype if link.moves else link.node.outputs[0].dtype
        result.type = result.type if dtype is None else ir.TensorType(dtype)
        if not link.moves:
            result.shape = value.shape
        elif result.shape is None:
            result.shape = link.node.outputs[0].shape
        value = result
    b.insert_before(chain[-1].node)
    return value


def _remove_unread(nodes: list[ir.Node]) -> None:
    """Remove those of ``nodes`` that nothing reads.

    Each node of the list reads the result of the next node. Stop at the first node whose result is read.
    """
    for node in nodes:
        if any(map(is_read, node.outputs)):
            return
        remove_nodes([node])


RULE = Rule("early-casts", "tidy", "model", check, use="always")
