"""Concat: operands that are loop-invariant are copied for each of them; the axis moves one position up."""

from collections.abc import Sequence

from rewrites.batching.alignment import axis_after_steps, expanded
from rewrites.batching.call import Call, Result
from rewrites.batching.table import rule

__all__ = ["concatenate"]


@rule("Concat")
def concatenate(call: Call) -> Sequence[Result]:
    """``Concat(x, w)`` -> ``Concat(x', Expand(w))``."""
    return call.like([expanded(call, index) for index in range(len(call.operands))], axis=axis_after_steps(call, 0))
