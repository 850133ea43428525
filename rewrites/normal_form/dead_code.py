"""Body nodes whose results nobody reads go.

y = Tanh(x); unused = Exp(x)    ->    y = Tanh(x)
"""

import onnx_ir as ir

from rewrites.context import Context
from rewrites.dependence import reads
from rewrites.loops import Loop
from rewrites.moving import remove_nodes
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch

__all__ = ["NAME", "check", "unread_nodes"]

NAME = "dead-code"


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Find nodes that no output of the body needs."""
    del ctx
    dead = unread_nodes(loop.body)
    if not dead:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        remove_nodes(dead)
        return [loop.node]

    return Patch(f"removed {len(dead)} nodes nobody reads", edit)


def unread_nodes(body: ir.Graph) -> list[ir.Node]:
    """Give the nodes of ``body`` that contribute to none of its outputs."""
    live: set[ir.Value] = set(body.outputs)
    dead = []
    for node in reversed(list(body)):
        if any(value in live for value in node.outputs):
            live.update(reads(node))
        else:
            dead.append(node)
    return dead
