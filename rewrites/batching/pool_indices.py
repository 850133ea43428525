"""MaxPool with the indices of the maxima, and MaxUnpool.

Places are counted through the whole tensor, so each step has an offset.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.batching.alignment import expanded
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import Dim, fold_steps, product_of, step_dims
from rewrites.batching.fold_into_batch import fold_batch
from rewrites.batching.folding import first_dim, folded, rows_first, unfolded
from rewrites.batching.table import rule
from rewrites.graph.values import static_dims
from rewrites.ops.versions import count_up, ints_operand, unsqueeze

__all__ = ["max_pool", "max_unpool"]


@rule("MaxPool")
def max_pool(call: Call) -> Sequence[Result]:
    """Merge the steps into the batch axis, and take their offsets off the indices."""
    results = list(fold_batch(call))
    if len(results) > 1:
        size = product_of(call.build, step_dims(call, call.operand(0)))
        results[1] = Result(call.build.op("Sub", results[1].value, _offsets(call, size)))
    return results


@rule("MaxUnpool")
def max_unpool(call: Call) -> Sequence[Result]:
    """Add the offsets to the indices; the size of one step's result must be known."""
    call.same_each_step(2)
    b, dims, given = call.build, static_dims(call.node.outputs[0]), ints_operand(call.node, 2)
    if dims is None and isinstance(given, tuple):
        dims = given
    if dims is None:
        raise call.refuse("SHAPE-UNKNOWN", f"the shape of {call.node.outputs[0].name!r} is not known")
    places = b.op("Add", expanded(call, 1), _offsets(call, int(np.prod(dims))))
    values: list[ir.Value | None] = [folded(call, 0), fold_steps(call, places, step_dims(call, call.operand(1)))]
    if call.given(2) is not None:
        values.append(rows_first(call, call.operand(2).value, dims[0]))
    (result,) = b.like(call.node, values)
    result.shape = ir.Shape([None, *dims[1:]])
    return unfolded(call, [result], first_dim(call, 0))


def _offsets(call: Call, size: Dim) -> ir.Value:
    """Return how many elements stand before each step, shaped to broadcast with all steps."""
    b = call.build
    starts = b.op("Mul", count_up(b, call.steps), size if isinstance(size, ir.Value) else b.const([size]))
    return unsqueeze(b, starts, range(1, 1 + call.rank(0)))
