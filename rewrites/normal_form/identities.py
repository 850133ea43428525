"""Copies inside a body go: Identity, and Cast to the type a value already has.

    a = Identity(x); y = Tanh(a)    ->    y = Tanh(x)

Kept where the copy is a body output and its source may not stand there itself (an input, an outer value, another output); what
else reads such a copy reads its source then.
"""

from collections.abc import Iterable

import onnx_ir as ir

from rewrites.context import Context
from rewrites.loops import Loop
from rewrites.moving import remove_nodes
from rewrites.names import Names
from rewrites.replace import replace_value
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch

__all__ = ["NAME", "check", "copies_among", "drop_copies"]

NAME = "identities"


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Find copies that can go."""
    copies = copies_among(loop.body)
    if not copies:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        drop_copies(copies, ctx.names)
        return [loop.node]

    return Patch(f"let the body read {len(copies)} values instead of their copies", edit)


def copies_among(nodes: Iterable[ir.Node]) -> list[ir.Node]:
    """Give those of ``nodes`` that copy a value whose readers could read it itself."""
    return [node for node in nodes if _is_copy(node) and (_may_go(node) or node.outputs[0].uses())]


def drop_copies(copies: Iterable[ir.Node], names: Names) -> None:
    """Let what reads ``copies``, as ``copies_among`` gives them, read what they copy, and remove those that may go."""
    for node in copies:
        source, copy = node.inputs[0], node.outputs[0]
        assert source is not None
        if not _may_go(node):
            for user, index in copy.uses():
                user.replace_input_with(index, source)
            continue
        if source.shape is None and source.type is not None and source.producer() is not None:
            source.shape = copy.shape
        replace_value(copy, source, names)
        remove_nodes([node])


def _is_copy(node: ir.Node) -> bool:
    if node.domain != "" or node.inputs[:1] in ((), (None,)):
        return False
    source = node.inputs[0]
    if node.op_type == "Cast" and source is not None and source.dtype is not None:
        return node.attributes["to"].as_int() == source.dtype.value
    return node.op_type == "Identity"


def _may_go(node: ir.Node) -> bool:
    return not node.outputs[0].is_graph_output() or _source_may_return(node)


def _source_may_return(node: ir.Node) -> bool:
    source = node.inputs[0]
    producer = source.producer() if source is not None else None
    return producer is not None and producer.graph is node.graph and source is not None and not source.is_graph_output()
