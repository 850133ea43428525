"""Broadcasting becomes numpy's in version 7.

    Add <broadcast = 1, axis = 1> (a, b)  ->  Add (a, Unsqueeze <axes = [1, ...]> (b))   (b's axes are a's from axis 1 on)
    Add <broadcast = 1> (a, b)            ->  Add (a, b)                                 (b's axes are a's last)
    Gemm <broadcast = 1> (a, b, c)        ->  Gemm (a, b, c)
    PRelu (x, slope)                      ->  PRelu (x, Unsqueeze <axes = [1, ...]> (slope))   (one slope for each channel)

The ranks must be known where ``axis`` is given, and for a PRelu with a slope for each channel.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.graph.values import static_dims
from rewrites.migration.step import Step
from rewrites.ops.versions.emit import unsqueeze

__all__ = ["numpy_broadcasting", "slope_for_each_channel"]


def numpy_broadcasting(step: Step) -> Sequence[ir.Value] | None:
    """Align the second operand with the axes of the first it stands for."""
    if not step.has("broadcast") and not step.has("axis"):
        return None
    a, b = step.required(0), step.required(1)
    if step.int_("broadcast", 0) and step.has("axis"):
        axis, behind = step.int_("axis", 0), step.known_rank(0) - step.known_rank(1)
        axis += step.known_rank(0) if axis < 0 else 0
        rank = step.known_rank(1)
        b = unsqueeze(step.builder, b, list(range(rank, rank + behind - axis)))
    inputs = [a, b, *step.node.inputs[2:]]
    return step.like(inputs, broadcast=None, axis=None)


def slope_for_each_channel(step: Step) -> Sequence[ir.Value] | None:
    """Let the slope's only axis be the channels."""
    slope, dims = step.required(1), static_dims(step.required(1))
    if dims is None:
        step.known_rank(1)
    if step.known_rank(1) != 1 or dims == (1,) or step.known_rank(0) <= 2:
        return None
    return step.like([step.required(0), unsqueeze(step.builder, slope, list(range(1, step.known_rank(0) - 1)))])
