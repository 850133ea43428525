"""Inserts an Identity before outputs of a loop body for which onnxruntime returns wrong numbers.

    body(s, x) => (s2, s2)    ->    body(s, x) => (s2, Identity(s2))
    body(s, x) => (x, y)      ->    body(s, x) => (Identity(x), y)

onnxruntime silently returns wrong numbers if a Scan body returns one value twice or returns an input directly. It also does so if a
Loop body returns its step number. A Loop body may return all other values directly. The wrong numbers appear at every optimisation
level, and onnx's checker accepts such models.

Works around ORT-SCAN-SHARED-OUTPUT and ORT-LOOP-STEP-NUMBER.
"""

import onnx_ir as ir

from rewrites.base.plain_text import listed
from rewrites.graph.context import Context
from rewrites.loops import Loop
from rewrites.loops.own_results import copy_outputs, wrongly_computed_outputs
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if an output of the body needs an Identity."""
    shared = wrongly_computed_outputs(loop)
    if not shared:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        copy_outputs(loop.body, shared, ctx.names)
        return [loop.node]

    names = listed(loop.body.outputs[i].name for i in shared)
    return Patch(f"gave the body outputs {names} nodes of their own", edit)


RULE = Rule("own-outputs", "repair", "loop", check, use="always")
