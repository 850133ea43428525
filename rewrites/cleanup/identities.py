"""Removes copies inside a body, such as an Identity, a Cast to the same type or a sum with 0.

Axes that are added and removed again are a copy too.

    a = Identity(x); y = Tanh(a)                           ->    y = Tanh(x)
    a = Squeeze(Unsqueeze(x, [0]) + 0, [0]); y = Tanh(a)   ->    y = Tanh(x)

If a sum with 0.0 is removed, -0.0 no longer becomes 0.0. onnxruntime removes such sums too.

A copy that the body returns stays if the body cannot return the source of the copy instead. This is the case if the source is a
body input, a value from outside the body, or another output. All other users of such a copy then read the source.
"""

import onnx_ir as ir

from rewrites.base.plain_text import counted
from rewrites.cleanup.cleanup import bypass_copies, find_copies
from rewrites.graph.context import Context
from rewrites.loops import Loop
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the body has copies that can be removed or bypassed."""
    copies = find_copies(loop.body, ctx.opset)
    if not copies:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        bypass_copies(copies, ctx.names, ctx.opset)
        return [loop.node]

    return Patch(f"let the body read {counted(len(copies), 'value')} instead of copies", edit)


RULE = Rule("identities", "cleanup", "loop", check)
