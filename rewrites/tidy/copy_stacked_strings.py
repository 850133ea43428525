"""Strings that a Loop stacks are copied by an operator that makes new ones, where onnxruntime would take them from another value.

    y = Identity (x)   # strings, stacked    ->    y = Where (true, x, x)

In models that stack them so themselves too: which value loses its strings is another one after a rewrite. Before opset 9 there is
no Where, and the Loop stays.

Works round ORT-LOOP-STACKED-STRINGS.
"""

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.context import Context
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.tidy.stacked_strings import stacks_of_taken_strings

__all__ = ["RULE", "check"]


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Find such stacks."""
    found = stacks_of_taken_strings(model.graph, ctx.opset) if ctx.opset >= since.WHERE else []

    def edit() -> list[ir.Node]:
        for body, position in found:
            b, value = ctx.builder(), body.outputs[position]
            copy = b.op("Where", b.const(np.array(True), np.bool_), value, value)
            copy.type, copy.shape = value.type, value.shape
            body.extend(b.nodes)
            b.nodes = []
            body.outputs[position] = copy
        return []

    what = "copies strings that a Loop stacks, which onnxruntime would take from another value"
    return Patch(what, edit) if found else NOTHING_HERE


RULE = Rule("copy-stacked-strings", "tidy", "model", check, use="always")
