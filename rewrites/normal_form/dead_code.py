"""Body nodes whose results nobody reads go.

    y = Tanh(x); unused = Exp(x)    ->    y = Tanh(x)

The same in the branches of the body; loops in it are loops of their own.
"""

import onnx_ir as ir

from rewrites.context import Context
from rewrites.dependence import reads
from rewrites.loops import Loop, is_loop
from rewrites.moving import remove_nodes
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch
from rewrites.walk import node_graphs

__all__ = ["NAME", "check", "unread_nodes"]

NAME = "dead-code"


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Find nodes that no output of the body needs."""
    del ctx
    dead = _unread_with_branches(loop.body)
    if not dead:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        remove_nodes(dead)
        return [loop.node]

    return Patch(f"removed {len(dead)} nodes nobody reads", edit)


def _unread_with_branches(graph: ir.Graph) -> list[ir.Node]:
    dead = unread_nodes(graph)
    gone = set(dead)
    branches = [branch for node in graph if node not in gone and not is_loop(node) for branch in node_graphs(node)]
    return dead + [node for branch in branches for node in _unread_with_branches(branch)]


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
