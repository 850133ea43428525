"""Copies inside a body go: Identity, Cast to the type a value already has, sums with 0, axes put in and taken out again.

    a = Identity(x); y = Tanh(a)                           ->    y = Tanh(x)
    a = Squeeze(Unsqueeze(x, [0]) + 0, [0]); y = Tanh(a)   ->    y = Tanh(x)

Adding 0.0 makes one zero of the two; onnxruntime leaves such sums out itself.

Kept where the copy is a body output and its source may not stand there itself (an input, an outer value, another output); what
else reads such a copy reads its source then.
"""

import onnx_ir as ir

from rewrites.base.plain_text import counted
from rewrites.cleanup.cleanup import copies_among, drop_copies
from rewrites.graph.context import Context
from rewrites.loops import Loop
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Find copies that can go."""
    copies = copies_among(loop.body, ctx.opset)
    if not copies:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        drop_copies(copies, ctx.names, ctx.opset)
        return [loop.node]

    return Patch(f"let the body read {counted(len(copies), 'value')} instead of copies", edit)


RULE = Rule("identities", "cleanup", "loop", check)
