"""The body of an opset-8 Scan, made to do nothing in steps past the end of its row.

    body(h, x) => (h2, y)    ->    body(h, live, x) => (Where(live, h2, h), y)

States freeze where ``live`` is False. Such steps run on numbers no step was meant for, and what they give is dropped. Where one may
fail on those, they are given what the first step of the row got instead, on which it did not fail:

    body(h, h0, live, x) => ...Where(live, h, h0)...
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.values import rank_of
from rewrites.loops import State
from rewrites.ops.versions import where

__all__ = ["feed_first_step", "mask_states"]


def mask_states(body: ir.Graph, states: Sequence[State], live: Mapping[int, ir.Value], ctx: Context) -> list[State]:
    """Freeze ``states`` where ``live``, for their rank, is False."""
    build = ctx.builder()
    masked = []
    for state in states:
        chosen = where(build, live[rank_of(state.inner) or 0], state.next, state.inner)
        chosen.type = chosen.type or state.next.type or state.inner.type
        chosen.shape = chosen.shape or state.next.shape or state.inner.shape
        masked.append(replace(state, next=chosen))
    body.extend(build.nodes)
    return masked


def feed_first_step(body: ir.Graph, states: Sequence[State], live: Mapping[int, ir.Value], ctx: Context) -> list[State]:
    """Let the body read initial values where ``live`` is False; return the states that carry those along."""
    head, tail = ctx.builder(), ctx.builder()
    carried = []
    first = next(iter(body), None)
    for state in states:
        users = list(state.inner.uses())
        initial = ir.Value(name=ctx.names.fresh(f"{state.inner.name}_first"), type=state.inner.type, shape=state.inner.shape)
        chosen = where(head, live[rank_of(state.inner) or 0], state.inner, initial)
        for node, index in users:
            node.replace_input_with(index, chosen)
        carried.append(State(state.initial, initial, tail.op("Identity", initial), None))
    if first is None:
        body.extend(head.nodes)
    else:
        head.insert_before(first)
    body.extend(tail.nodes)
    return carried
