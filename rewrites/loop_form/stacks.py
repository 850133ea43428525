"""Turns states that only collect results into stacked results, and computes the final values of the states from the stacks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import unread_nodes, varying_values
from rewrites.base import since
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import refined, with_axes, without_names
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import is_read, rank_of
from rewrites.loops import Loop, LoopView, ScanOutput, ScanView, State, rebuild
from rewrites.loops.own_results import give_own_nodes
from rewrites.ops.versions import concat, move_first_axis, reshape, shape_of

__all__ = ["Collected", "Final", "collect", "joined_rows", "only_returned"]


Final = Callable[[Builder, ir.Value], ir.Value]


@dataclass(frozen=True)
class Collected:
    """A state that collects a result of each step, and how a stacked result replaces it.

    Args:
        state: The state.
        shape: The shape of the result of one step.
        result: Emits the result of one step in the body.
        finals: Pairs: a value after the loop that depends on the state, and a function that emits it from the stacked results.
    """

    state: State
    shape: ir.Shape
    result: Callable[[Builder], ir.Value]
    finals: Sequence[tuple[ir.Value, Final]]


def collect(loop: Loop, collecting: Sequence[Collected], ctx: Context) -> list[ir.Node]:
    """Rebuild ``loop`` with stacked results instead of the ``collecting`` states.

    The body may read these states only for their own updates.
    """
    gone = {state.state.inner for state in collecting}
    kept = [state for state in loop.states if state.inner not in gone]
    outputs = list(loop.scan_outputs)
    for collected in collecting:
        inside, after = ctx.builder(), ctx.builder()
        result = collected.result(inside)
        producer = result.producer()
        if producer is None or (producer.graph is not loop.body and producer not in inside.nodes):
            result = inside.op("Identity", result)
        result.type = result.type or _element_type(collected.state)
        known = result.shape if rank_of(result) == len(collected.shape) else None
        result.shape = refined(without_names(known), collected.shape)  # without steps, undeclared sizes would be 0
        inside.append_to(loop.body)
        outputs.append(ScanOutput(result, _stack(collected, result, after, ctx)))
        after.insert_after(loop.node)
    inner = [*(state.next for state in kept), *(output.inner for output in outputs)]
    loop.body.outputs[:] = [loop.condition_out, *inner] if isinstance(loop, LoopView) else inner
    updates = varying_values(loop.body, gone)
    remove_nodes(dead for dead in unread_nodes(loop.body) if any(value in updates for value in dead.outputs))
    producers = {old.producer(): None for collected in collecting for old, _ in collected.finals}
    readers = [node for node in producers if node is not None and node is not loop.node]
    for reader in readers:
        reader.resize_inputs(0)
    rebuilt = rebuild(loop, ctx.names, states=kept, scan_outputs=outputs)
    remove_nodes(readers)
    if isinstance(loop, ScanView):
        give_own_nodes(loop.body, ctx.names)
    return [rebuilt]


def only_returned(updated: ir.Value, loop: Loop) -> bool:
    """Return True if nothing reads ``updated``, except that the body of ``loop`` returns it once.

    An Identity may be between.
    """
    returned = sum(value is updated for value in loop.body.outputs)
    for user, _ in updated.uses():
        if user.op_type != "Identity" or user.domain != "" or user.graph is not loop.body:
            return False
        returned += 1 if only_returned(user.outputs[0], loop) else 2
    return returned <= 1


def _element_type(state: State) -> ir.TypeProtocol | None:
    """Return the type of the tensors that a state collects.

    It is used if shape inference cannot infer the type of the tensors.
    """
    kind = state.initial.type or state.inner.type
    return kind.elem_type if isinstance(kind, ir.SequenceType) else kind


def _stack(collected: Collected, result: ir.Value, after: Builder, ctx: Context) -> ir.Value:
    """Emit the final values of ``collected`` after the loop. Return the value for the stacked result.

    The loop must return this value. If a final value is equal to the stack, return that final value. Otherwise, return a new value.
    """
    shape = with_axes(without_names(collected.shape), 0, None)
    stack = ir.Value(name=ctx.names.fresh(f"{result.name}_steps"), type=result.type, shape=shape)
    same = None
    for old, make in collected.finals:
        value = make(after, stack) if is_read(old) else None
        if value is stack and same is None:
            same = old
        elif value is not None:
            replace_value(old, value, ctx.names)
    if same is None:
        return stack
    for node, index in stack.uses():
        node.replace_input_with(index, same)
    return same


def joined_rows(b: Builder, stack: ir.Value, axis: int, width: int | None, size: Callable[[int], ir.Value], rank: int) -> ir.Value:
    """Concatenate the elements of a stack along ``axis``.

    The sizes of the other axes come from ``size``, because a stack without steps has size 0 wherever no size is declared.

    Args:
        b: Collects the nodes.
        stack: The results of all steps, with the steps as axis 0.
        axis: The axis of the result along which the elements are concatenated.
        width: The size of each element along ``axis``; None if the elements lack this axis.
        size: Returns the size of another axis of the result.
        rank: The rank of the result.
    """
    moved = move_first_axis(b, stack, axis, rank_of(stack) or 0)
    if width is None and stack.shape is not None and all(isinstance(dim, int) for dim in stack.shape.dims[1:]):
        return moved
    count = shape_of(b, stack, 0)
    if width not in (None, 1):
        count = b.op("Mul", count, b.const(np.array([width], np.int64)))
    parts = [count if i == axis else size(i) for i in range(rank)]
    if b.opset >= since.ALLOWZERO:
        return b.op("Reshape", moved, concat(b, parts, 0), allowzero=1)
    return b.op("Reshape", moved, concat(b, parts, 0)) if rank else reshape(b, moved, [])
