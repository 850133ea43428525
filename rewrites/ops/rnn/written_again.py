"""Writes a recurrent node again, on changed inputs, with changed results, in the place of the old one."""

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.marks import carry
from rewrites.graph.replace import remove_nodes, take_over

__all__ = ["put_in_place", "write_again"]


def write_again(
    ctx: Context,
    b: Builder,
    node: ir.Node,
    inputs: Sequence[ir.Value | None],
    result: Callable[[int, ir.Value], ir.Value],
    **changed: Any,
) -> ir.Node:
    """Put a node like ``node`` on ``inputs``, with some attributes changed (None removes one), in its place, and return it.

    ``result``: makes of output number i of the new node what stands for that of the old one. What the old node does not give, the
    new one does not either.
    """
    made = b.like(node, inputs, **changed)
    new = made[0].producer()
    assert new is not None
    results: list[ir.Value | None] = []
    for i, (old, value) in enumerate(zip(node.outputs, made, strict=True)):
        results.append(result(i, value) if old.name else None)
        if not old.name:
            value.name = ""
    new.doc_string = node.doc_string
    new.metadata_props.update(node.metadata_props)
    carry(node, new)
    name = node.name
    put_in_place(ctx, b, node, results)
    new.name = name
    return new


def put_in_place(ctx: Context, b: Builder, node: ir.Node, results: Sequence[ir.Value | None]) -> None:
    """Put the collected nodes in the place of ``node``, ``results`` in that of its outputs, names included."""
    b.insert_before(node)
    for old, value in zip(node.outputs, results, strict=False):
        if value is not None:
            take_over(old, value, ctx.names)
    remove_nodes([node])
