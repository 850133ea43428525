"""Turns states that only collect results into stacked results.

The final values of the states are computed from the stacks, after the loop.
"""

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

__all__ = ["CollectedState", "EmitFinal", "is_only_returned", "join_rows", "stack_collected_states"]


EmitFinal = Callable[[Builder, ir.Value], ir.Value]


@dataclass(frozen=True)
class CollectedState:
    """A state that only collects a result of each step, and how a stacked result replaces the state.

    Args:
        state: The state.
        shape: The shape of the result of one step.
        emit_result: Emits the result of one step in the body.
        finals: Pairs of a value after the loop that depends on the state, and a function that emits this value from the stack.
        previous: The initial value and the body input of a new state, which carries the result of the previous step.
    """

    state: State
    shape: ir.Shape
    emit_result: Callable[[Builder], ir.Value]
    finals: Sequence[tuple[ir.Value, EmitFinal]]
    previous: tuple[ir.Value, ir.Value] | None = None


def stack_collected_states(loop: Loop, collected_states: Sequence[CollectedState], ctx: Context) -> list[ir.Node]:
    """Rebuild ``loop`` with stacked results instead of the states ``collected_states``. Return the loop.

    The body may read these states only for their own updates.
    """
    removed = {state.state.inner for state in collected_states}
    kept = [state for state in loop.states if state.inner not in removed]
    outputs = list(loop.scan_outputs)
    for collected in collected_states:
        inside, after = ctx.builder(), ctx.builder()
        result = collected.emit_result(inside)
        producer = result.producer()
        if producer is None or (producer.graph is not loop.body and producer not in inside.nodes):
            result = inside.op("Identity", result)
        result.type = result.type or _element_type(collected.state)
        known_shape = result.shape if rank_of(result) == len(collected.shape) else None
        result.shape = refined(without_names(known_shape), collected.shape)  # without steps, undeclared sizes would be 0
        if collected.previous is not None:
            kept.append(State(*collected.previous, inside.op("Identity", result), None))
        inside.append_to(loop.body)
        outputs.append(ScanOutput(result, _emit_finals(collected, result, after, ctx)))
        after.insert_after(loop.node)
    body_outputs = [*(state.next for state in kept), *(output.inner for output in outputs)]
    loop.body.outputs[:] = [loop.condition_out, *body_outputs] if isinstance(loop, LoopView) else body_outputs
    updates = varying_values(loop.body, removed)
    remove_nodes(dead for dead in unread_nodes(loop.body) if any(value in updates for value in dead.outputs))
    producers = {old.producer(): None for collected in collected_states for old, _ in collected.finals}
    readers = [node for node in producers if node is not None and node is not loop.node]
    for reader in readers:
        reader.resize_inputs(0)
    rebuilt = rebuild(loop, ctx.names, states=kept, scan_outputs=outputs)
    remove_nodes(readers)
    if isinstance(loop, ScanView):
        give_own_nodes(loop.body, ctx.names)
    return [rebuilt]


def is_only_returned(updated: ir.Value, loop: Loop) -> bool:
    """Return True if nothing reads ``updated``, except that the body of ``loop`` returns it once.

    The body may also return an Identity of ``updated``.
    """
    returned = sum(value is updated for value in loop.body.outputs)
    for user, _ in updated.uses():
        if user.op_type != "Identity" or user.domain != "" or user.graph is not loop.body:
            return False
        returned += 1 if is_only_returned(user.outputs[0], loop) else 2
    return returned <= 1


def _element_type(state: State) -> ir.TypeProtocol | None:
    """Return the type of the tensors that ``state`` collects.

    This type is used if shape inference cannot infer the type of the tensors.
    """
    type_ = state.initial.type or state.inner.type
    return type_.elem_type if isinstance(type_, ir.SequenceType) else type_


def _emit_finals(collected: CollectedState, result: ir.Value, after: Builder, ctx: Context) -> ir.Value:
    """Emit the final values of ``collected`` after the loop. Return the value to use as the stack.

    If a final value equals the stack, this is the final value. Otherwise, it is a new value. The loop must return it.

    Args:
        collected: The state to replace.
        result: The result of one step in the body.
        after: Collects the nodes after the loop.
        ctx: The context of the rule.
    """
    shape = with_axes(without_names(collected.shape), 0, None)
    stack = ir.Value(name=ctx.names.fresh(f"{result.name}_steps"), type=result.type, shape=shape)
    equal_final = None
    for old, emit_final in collected.finals:
        value = emit_final(after, stack) if is_read(old) else None
        if value is stack and equal_final is None:
            equal_final = old
        elif value is not None:
            replace_value(old, value, ctx.names)
    if equal_final is None:
        return stack
    for node, index in stack.uses():
        node.replace_input_with(index, equal_final)
    return equal_final


def join_rows(b: Builder, stack: ir.Value, axis: int, width: int | None, size: Callable[[int], ir.Value], rank: int) -> ir.Value:
    """Emit nodes that concatenate the elements of ``stack`` along ``axis``, and return the result.

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
