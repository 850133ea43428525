"""What a state is multiplied by in each step, for all steps at once."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base.not_applicable import NotApplicable
from rewrites.fission.stacks import Stacks
from rewrites.graph.values import rank_of
from rewrites.loops import State
from rewrites.ops.versions import unsqueeze
from rewrites.recurrences.linear.drive_rows import put_stacks
from rewrites.recurrences.linear.reading import Path

__all__ = ["decays_of"]


def decays_of(paths: Sequence[Path], state: State, stacks: Stacks, sizes: StepSizes) -> ir.Value | NotApplicable:
    """Return what ``state`` is multiplied by on all ``paths`` together, along axis 0, or why it cannot be had; broadcasts to it."""
    build, rank, kind = stacks.build, rank_of(state.inner), state.inner.dtype
    assert kind is not None
    factors = dict.fromkeys(factor.value for path in paths for factor in path.factors)
    ranks = {value: rank_of(value) for value in factors}
    if rank is None or any(one is None or one > rank for one in ranks.values()):
        return NotApplicable("LINEAR-SHAPE", f"the rank of what '{state.inner.name}' is multiplied by is not known")
    refusal = put_stacks(factors, stacks, sizes)
    if refusal is not None:
        return refusal

    def spread(value: ir.Value) -> ir.Value:
        return unsqueeze(build, stacks.full(value), list(range(1, 1 + rank - (ranks[value] or 0))))

    given = {value: spread(value) for value in factors}
    alone = [path.numbers for path in paths if not path.factors]
    whole = build.const(np.asarray(sum(alone), kind.numpy())) if alone else None
    for path in paths:
        if not path.factors:
            continue
        is_taken_off = whole is not None and bool((path.numbers < 0).all())
        numbers = np.asarray(-path.numbers if is_taken_off else path.numbers)
        term = None if (numbers == 1).all() else build.const(numbers.astype(kind.numpy()))
        for factor in path.factors:
            value = given[factor.value]
            if factor.divides:
                term = build.op("Div", build.const(np.array(1, kind.numpy())) if term is None else term, value)
            else:
                term = value if term is None else build.op("Mul", term, value)
        assert term is not None
        whole = term if whole is None else build.op("Sub" if is_taken_off else "Add", whole, term)
    assert whole is not None
    return whole
