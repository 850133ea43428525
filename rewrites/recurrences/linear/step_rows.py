"""Compute the drives and decays of a state for all steps, with the operators of the body.

``decay_reader`` explains drives and decays.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base.not_applicable import NotApplicable
from rewrites.batching import Call, Operand, batch
from rewrites.fission.stacks import Stacks
from rewrites.graph.dims import same
from rewrites.graph.values import rank_of
from rewrites.loops import State
from rewrites.ops.versions import unsqueeze
from rewrites.recurrences.linear.decay_reader import Drive, Path, drives_in_order
from rewrites.recurrences.results import put_stacks

__all__ = ["decays_of", "stack_of"]


def stack_of(drive: Drive | ir.Value, state: State, stacks: Stacks, sizes: StepSizes) -> ir.Value | NotApplicable:
    """Return the drives of all steps, stacked along axis 0.

    Return a reason if they cannot be computed for all steps, or if a drive may have another shape than ``state``.
    """
    values = [part for part in drives_in_order(drive) if isinstance(part, ir.Value)]
    refusal, emitted = put_stacks(values, stacks, sizes), dict[Drive | ir.Value, Operand]()
    if refusal is not None:
        return refusal
    for part in drives_in_order(drive):
        operand = stacks.get(part) if isinstance(part, ir.Value) else _emitted_node(part, emitted, stacks)
        if isinstance(operand, NotApplicable):
            return operand
        emitted[part] = operand
    result = emitted[drive]
    if not same(result.inner.shape, state.inner.shape):
        return _other_shape(result.inner, state.inner)
    if result.batched:
        return result.value
    stacks.replacements[result.inner] = result
    return stacks.stack_of(result.inner)


def _emitted_node(drive: Drive, emitted: Mapping[Drive | ir.Value, Operand], stacks: Stacks) -> Operand | NotApplicable:
    build, node, result = stacks.build, drive.node, drive.node.outputs[0]
    operands = [emitted[operand] for operand in drive.operands if operand is not None]
    if len(operands) < len(node.inputs):
        (alone,) = operands
        if not same(alone.inner.shape, result.shape):
            return _other_shape(alone.inner, result)
        is_subtracted = node.op_type == "Sub" and drive.operands[0] is None
        return Operand(build.op("Neg", alone.value), alone.batched, result) if is_subtracted else alone
    if not any(operand.batched for operand in operands):
        return Operand(build.like(node, [operand.value for operand in operands])[0], False, result)
    batched = batch(Call(node, tuple(operands), build, stacks.steps))
    return batched if isinstance(batched, NotApplicable) else Operand(batched[0].value, batched[0].batched, result)


def _other_shape(value: ir.Value, wanted: ir.Value) -> NotApplicable:
    detail = f"'{value.name}' is not known to have the shape of '{wanted.name}', of rank {rank_of(wanted)}"
    return NotApplicable("LINEAR-SHAPE", detail)


def decays_of(paths: Sequence[Path], state: State, stacks: Stacks, sizes: StepSizes) -> ir.Value | NotApplicable:
    """Return the decays of all steps, stacked along axis 0, or the reason why they cannot be computed.

    Each of ``paths`` is ``state`` times some factors. The decay in a step is the sum of the products of these factors.
    """
    build, rank, kind = stacks.build, rank_of(state.inner), state.inner.dtype
    assert kind is not None
    factors = dict.fromkeys(factor.value for path in paths for factor in path.factors)
    ranks = {value: rank_of(value) for value in factors}
    if rank is None or any(value_rank is None or value_rank > rank for value_rank in ranks.values()):
        return NotApplicable("LINEAR-SHAPE", f"the rank of a value that '{state.inner.name}' is multiplied by is not known")
    refusal = put_stacks(factors, stacks, sizes)
    if refusal is not None:
        return refusal

    def with_rank(value: ir.Value) -> ir.Value:
        return unsqueeze(build, stacks.stack_of(value), list(range(1, 1 + rank - (ranks[value] or 0))))

    unsqueezed = {value: with_rank(value) for value in factors}
    alone = [path.numbers for path in paths if not path.factors]
    decay = build.const(np.asarray(sum(alone), kind.numpy())) if alone else None
    for path in paths:
        if not path.factors:
            continue
        is_subtracted = decay is not None and bool((path.numbers < 0).all())
        numbers = np.asarray(-path.numbers if is_subtracted else path.numbers)
        term = None if (numbers == 1).all() else build.const(numbers.astype(kind.numpy()))
        for factor in path.factors:
            value = unsqueezed[factor.value]
            if factor.divides:
                term = build.op("Div", build.const(np.array(1, kind.numpy())) if term is None else term, value)
            else:
                term = value if term is None else build.op("Mul", term, value)
        assert term is not None
        decay = term if decay is None else build.op("Sub" if is_subtracted else "Add", decay, term)
    assert decay is not None
    return decay
