"""DFT, along an axis that moves one position up, and AffineGrid, whose batch axis takes the steps."""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.batching.alignment import axes_after_steps, axis_after_steps
from rewrites.batching.call import Call, Result
from rewrites.batching.folding import first_dim, folded, rows_first, unfolded
from rewrites.batching.table import rule
from rewrites.ops.versions import ints_operand

__all__ = ["affine_grid", "fourier", "fourier_by_attribute"]


@rule("DFT", until=20)
def fourier_by_attribute(call: Call) -> Sequence[Result]:
    """Before opset 20 the axis is an attribute."""
    call.same_each_step(1)
    return call.like(call.values, axis=axis_after_steps(call, 1))


@rule("DFT", since=20)
def fourier(call: Call) -> Sequence[Result]:
    """The axis is an input, or the last but one."""
    call.same_each_step(1, 2)
    values = call.values
    if call.given(2) is not None:
        values[2] = axes_after_steps(call, 2, call.rank(0))
    return call.like(values)


@rule("AffineGrid")
def affine_grid(call: Call) -> Sequence[Result]:
    """``AffineGrid(theta [N, ...], [N, C, ...])`` -> the same of ``steps * N`` rows."""
    call.same_each_step(1)
    batch, size = first_dim(call, 0), call.operand(1).value
    (result,) = call.build.like(call.node, [folded(call, 0), rows_first(call, size, batch)])
    known = ints_operand(call.node, 1)
    if isinstance(known, tuple):
        result.shape = ir.Shape([None, *known[2:], len(known) - 2])
    return unfolded(call, [result], batch)
