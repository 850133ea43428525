"""GroupNormalization takes a scale and bias for each channel from version 21 on, not for each group.

    GroupNormalization <num_groups = g> (x, s, b)  ->  GroupNormalization <num_groups = g, stash_type> (x, s', b')
    s' = Reshape (Expand (Reshape (s, [-1, 1]), [1, C / g]), [-1])

Version 18 computes in the type of the data, so ``stash_type`` names that type.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.graph.values import dim_of
from rewrites.migration.step import Step
from rewrites.migration.unconvertible import Unconvertible
from rewrites.ops.versions.emit import concat, reshape, shape_of

__all__ = ["parameters_for_each_channel"]


def parameters_for_each_channel(step: Step) -> Sequence[ir.Value] | None:
    """Repeat each group's scale and bias for its channels."""
    b, x, groups, dtype = step.builder, step.required(0), step.int_("num_groups", 1), step.dtype()
    if groups < 1:
        raise Unconvertible(f"its attribute 'num_groups' is {groups}")
    channels = dim_of(x, 1)
    if isinstance(channels, int):
        each = b.const([1, channels // groups])
    else:
        each = concat(b, [b.const([1]), b.op("Div", shape_of(b, x, 1), b.const([groups]))], 0)
    scale, bias = (reshape(b, b.op("Expand", reshape(b, step.required(i), [-1, 1]), each), [-1]) for i in (1, 2))
    return step.like([x, scale, bias], stash_type=int(dtype))
