"""Body nodes whose results nobody reads go.

    y = Tanh(x); unused = Exp(x)    ->    y = Tanh(x)

The same in the branches of the body; loops in it are loops of their own. Where a Loop's condition may turn out not to be one
element, nodes that may fail stay with what they read: without the error that ended the run, onnxruntime reads a condition without
elements, and the process dies.

Works round ORT-LOOP-EMPTY-CONDITION.
"""

import onnx_ir as ir

from rewrites.analysis.dependence import unread_in_loop
from rewrites.base.plain_text import counted
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes
from rewrites.loops import Loop
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Find nodes that no output of the body needs."""
    del ctx
    dead = unread_in_loop(loop)
    if not dead:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        remove_nodes(dead)
        return [loop.node]

    return Patch(f"removed {counted(len(dead), 'node')} nobody reads", edit)


RULE = Rule("dead-code", "cleanup", "loop", check)
