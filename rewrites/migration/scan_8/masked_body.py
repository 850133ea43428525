"""The body of an opset-8 Scan, made to do nothing in steps past the end of its row.

    body(h, x) => (h2, y)    ->    body(h, live, x) => (Where(live, h2, h), Where(live, y, 0))

States freeze and outputs are zero, False or "" where ``live`` is False. Such steps run on numbers no step was meant for. Where one
may fail on those, they are given what the first step of the row got instead, on which it did not fail:

    body(h, h0, live, x) => ...Where(live, h, h0)...
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from rewrites.context import Context
from rewrites.loops import ScanOutput, State
from rewrites.spelling import where

__all__ = ["guard_states", "mask_outputs", "mask_states"]


def mask_states(body: ir.Graph, states: Sequence[State], live: ir.Value, ctx: Context) -> list[State]:
    """Freeze ``states`` where ``live`` is False."""
    build = ctx.builder()
    masked = [replace(state, next=where(build, live, state.next, state.inner)) for state in states]
    body.extend(build.nodes)
    return masked


def mask_outputs(body: ir.Graph, outputs: Sequence[ScanOutput], live: ir.Value, ctx: Context) -> list[ScanOutput]:
    """Let outputs be zero where ``live`` is False."""
    build = ctx.builder()
    masked = []
    for output in outputs:
        kind = output.inner.dtype or ir.DataType.FLOAT
        if kind == ir.DataType.BOOL:
            value = build.op("And", live, output.inner)
        else:
            zero = np.array("" if kind == ir.DataType.STRING else 0, object if kind == ir.DataType.STRING else kind.numpy())
            value = where(build, live, output.inner, build.const(zero))
        masked.append(replace(output, inner=value))
    body.extend(build.nodes)
    return masked


def guard_states(body: ir.Graph, states: Sequence[State], live: ir.Value, ctx: Context) -> list[State]:
    """Let the body read initial values where ``live`` is False; gives the states that carry those along."""
    head, tail = ctx.builder(), ctx.builder()
    carried = []
    first = next(iter(body), None)
    for state in states:
        users = list(state.inner.uses())
        initial = ir.Value(name=ctx.names.fresh(f"{state.inner.name}_first"), type=state.inner.type, shape=state.inner.shape)
        guarded = where(head, live, state.inner, initial)
        for node, index in users:
            node.replace_input_with(index, guarded)
        carried.append(State(state.initial, initial, tail.op("Identity", initial), None))
    if first is None:
        body.extend(head.nodes)
    else:
        head.insert_before(first)
    body.extend(tail.nodes)
    return carried
