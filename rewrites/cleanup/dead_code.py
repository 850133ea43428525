"""Removes body nodes whose results are never read.

    y = Tanh(x); unused = Exp(x)    ->    y = Tanh(x)

The rule also removes nodes in branches of the body, but not in nested loops, to which it is applied separately.

If the condition of a Loop may be empty, nodes that may fail stay, and so do the nodes that they need. Without the error of such a
node, onnxruntime would continue, read the empty condition and crash.

Works around ORT-LOOP-EMPTY-CONDITION.
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
    """Return a patch if the body has nodes that no output of the body needs."""
    del ctx
    dead = unread_in_loop(loop)
    if not dead:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        remove_nodes(dead)
        return [loop.node]

    return Patch(f"removed {counted(len(dead), 'node')} nobody reads", edit)


RULE = Rule("dead-code", "cleanup", "loop", check)
