"""What is added to a state in each step, for all steps at once, by the body's own operators."""

from collections.abc import Iterable, Mapping

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.dependence import nodes_behind, not_repeatable, varying_values
from rewrites.base.not_applicable import NotApplicable
from rewrites.batching import Call, Operand, batch
from rewrites.fission.stacks import Stacks
from rewrites.graph.dims import same
from rewrites.graph.values import rank_of
from rewrites.loops import State
from rewrites.recurrences.linear.reading import Drive, drives_in_order

__all__ = ["put_stacks", "stack_of"]


def put_stacks(values: Iterable[ir.Value], stacks: Stacks, sizes: StepSizes) -> NotApplicable | None:
    """Put ``values`` of all steps into ``stacks``; return a reason where they cannot be had, or break the memory budget."""
    nodes = nodes_behind(stacks.body, values, [*stacks.known, *stacks.sources()])
    varying = varying_values(stacks.body, stacks.sources())
    for node in nodes:
        made = [value for value in node.outputs if value in varying]
        reason = not_repeatable(node) or next((why for value in made if (why := sizes.not_a_stack(value))), None)
        if reason is not None:
            return reason
    return stacks.add_all(nodes)


def stack_of(drive: Drive | ir.Value, state: State, stacks: Stacks, sizes: StepSizes) -> ir.Value | NotApplicable:
    """Return the drive of ``state`` in all steps, along axis 0, or why there is none of the state's shape."""
    values = [part for part in drives_in_order(drive) if isinstance(part, ir.Value)]
    refusal = put_stacks(values, stacks, sizes)
    found = _emitted(drive, stacks) if refusal is None else refusal
    if isinstance(found, NotApplicable):
        return found
    if not same(found.inner.shape, state.inner.shape):
        return _other_shape(found.inner, state.inner)
    stack = found.value
    if not found.batched:
        stacks.known[found.inner] = found
        stack = stacks.full(found.inner)
    return stack


def _emitted(drive: Drive | ir.Value, stacks: Stacks) -> Operand | NotApplicable:
    emitted = dict[Drive | ir.Value, Operand]()
    for part in drives_in_order(drive):
        operand = stacks.get(part) if isinstance(part, ir.Value) else _emitted_node(part, emitted, stacks)
        if isinstance(operand, NotApplicable):
            return operand
        emitted[part] = operand
    return emitted[drive]


def _emitted_node(drive: Drive, emitted: Mapping[Drive | ir.Value, Operand], stacks: Stacks) -> Operand | NotApplicable:
    build, node, result = stacks.build, drive.node, drive.node.outputs[0]
    operands = [emitted[operand] for operand in drive.operands if operand is not None]
    if len(operands) < len(node.inputs):
        (alone,) = operands
        if not same(alone.inner.shape, result.shape):
            return _other_shape(alone.inner, result)
        is_taken_off = node.op_type == "Sub" and drive.operands[0] is None
        return Operand(build.op("Neg", alone.value), alone.batched, result) if is_taken_off else alone
    if not any(operand.batched for operand in operands):
        return Operand(build.like(node, [operand.value for operand in operands])[0], False, result)
    found = batch(Call(node, tuple(operands), build, stacks.steps))
    return found if isinstance(found, NotApplicable) else Operand(found[0].value, found[0].batched, result)


def _other_shape(one: ir.Value, other: ir.Value) -> NotApplicable:
    detail = f"'{one.name}' has not surely the shape of '{other.name}', of rank {rank_of(other)}"
    return NotApplicable("LINEAR-SHAPE", detail)
