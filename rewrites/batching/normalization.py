"""Normalisations over trailing axes: the axis moves one place up; scale and bias must be the same in every step."""

from collections.abc import Sequence

from rewrites.batching.alignment import axis_after_steps
from rewrites.batching.call import Call, Result
from rewrites.batching.table import rule

__all__ = ["trailing_normalization"]


@rule("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
def trailing_normalization(call: Call) -> Sequence[Result]:
    """Scale and bias belong to the trailing axes, and are counted from the end."""
    call.same_each_step(1, 2)
    return call.like(call.values, axis=axis_after_steps(call, -1))
