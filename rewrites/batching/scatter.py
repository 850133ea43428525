"""ScatterElements and ScatterND: every operand gets the steps.

``ScatterND(x, i, u)`` -> ``ScatterND(x', [step, i'], u')``: the number of the step becomes the first coordinate. The order in which
colliding updates of one step are applied stays.
"""

from collections.abc import Sequence

from rewrites.batching.alignment import axis_after_steps, expanded
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import shape_tensor, step_dims
from rewrites.batching.table import rule
from rewrites.ops.versions import squeeze, unsqueeze

__all__ = ["scatter_elements", "scatter_nd"]


@rule("Scatter", "ScatterElements")
def scatter_elements(call: Call) -> Sequence[Result]:
    """The axis moves up; indices along the other axes, and so the steps, address themselves."""
    return call.like([expanded(call, index) for index in range(3)], axis=axis_after_steps(call, 0))


@rule("ScatterND")
def scatter_nd(call: Call) -> Sequence[Result]:
    """One more coordinate for each index."""
    rank, b = call.rank(1), call.build
    indices = expanded(call, 1)
    numbers = b.op("Range", b.const(0), squeeze(b, call.steps, [0]), b.const(1))
    spread = unsqueeze(b, numbers, range(1, rank + 1))
    dims = step_dims(call, call.operand(1))
    if rank > 1:
        spread = b.op("Expand", spread, shape_tensor(b, [1, *dims[:-1], 1]))
    return call.like([expanded(call, 0), b.op("Concat", spread, indices, axis=rank), expanded(call, 2)])
