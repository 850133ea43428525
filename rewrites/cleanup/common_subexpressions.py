"""Computes equal nodes of a body once.

    a = Tanh(x); b = Tanh(x); y = Add(a, b)    ->    a = Tanh(x); y = Add(a, a)

Two nodes are equal if they have the same operator, inputs and attributes, and the same optional outputs are present. Nodes with
nested graphs and random nodes stay. A node that computes a body output stays too, because each output needs a node of its own.
"""

import onnx_ir as ir

from rewrites.base.plain_text import counted
from rewrites.cleanup.cleanup import equal_nodes, merge_equal_nodes
from rewrites.graph.context import Context
from rewrites.loops import Loop
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if nodes of the body repeat the computation of an earlier node."""
    twins = equal_nodes(loop.body)
    if not twins:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        merge_equal_nodes(twins, ctx.names)
        return [loop.node]

    return Patch(f"merged {counted(len(twins), 'node')} with others that do the same", edit)


RULE = Rule("common-subexpressions", "cleanup", "loop", check)
