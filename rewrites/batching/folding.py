"""Merges the steps into an axis that operands have already, mostly their batch axis, and parts them again in the results."""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.base import since
from rewrites.batching.alignment import expanded
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import Dim, fold_steps, product_of, shaped, step_dims, unfold_steps
from rewrites.graph.values import rank_of
from rewrites.ops.versions import concat, shape_of, slice_axis, transpose

__all__ = ["first_dim", "folded", "folded_at", "rows_first", "static_steps", "unfolded", "unfolded_at", "vector_of_all_steps"]

_END = 2**63 - 1


def first_dim(call: Call, index: int) -> Dim:
    """Return the size of axis 0 of operand ``index`` in one step, its batch axis."""
    if call.rank(index) < 1:
        raise call.refuse("NO-BATCHING-RULE", f"input {index} is a scalar")
    return step_dims(call, call.operand(index))[0]


def folded(call: Call, index: int) -> ir.Value | None:
    """Return operand ``index`` (None where it is absent) with the steps merged into its axis 0, copied for each if need be."""
    if call.given(index) is None:
        return None
    first_dim(call, index)
    return fold_steps(call, expanded(call, index), step_dims(call, call.operand(index)))


def unfolded(call: Call, values: Sequence[ir.Value], first: Dim) -> list[Result]:
    """Part the axis 0 of ``values``, the results of ``call.node`` in order, into the steps and ``first``."""
    return [Result(_parted(call, value, output, first)) for value, output in zip(values, call.node.outputs, strict=True)]


def _parted(call: Call, value: ir.Value, output: ir.Value, first: Dim) -> ir.Value:
    b, ranks = call.build, (rank_of(value), rank_of(output))
    rank = next((one for one in ranks if one is not None), None)
    if rank is not None:
        return unfold_steps(call, value, first, rank)
    rest = slice_axis(b, b.op("Shape", value), 0, 1, _END)
    shape = concat(b, [call.steps, first if isinstance(first, ir.Value) else b.const([first]), rest], axis=0)
    return b.op("Reshape", value, shape, allowzero=1 if call.opset >= since.ALLOWZERO else None)


def rows_first(call: Call, sizes: ir.Value, first: Dim) -> ir.Value:
    """Return ``sizes``, a shape of one step, with the rows of all steps in place of the ``first`` dimension."""
    b, rows = call.build, product_of(call.build, [call.steps, first])
    return concat(b, [rows if isinstance(rows, ir.Value) else b.const([rows]), slice_axis(b, sizes, 0, 1, _END)], axis=0)


def folded_at(call: Call, index: int, axis: int) -> ir.Value | None:
    """Return operand ``index`` (None where it is absent) with the steps merged into its ``axis``, in front of what is there."""
    if call.given(index) is None:
        return None
    rank = call.rank(index)
    if rank <= axis:
        raise call.refuse("NO-BATCHING-RULE", f"input {index} has {rank} axes")
    dims = step_dims(call, call.operand(index))
    turned = transpose(call.build, expanded(call, index), [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)])
    return shaped(call, turned, [*dims[:axis], product_of(call.build, [call.steps, dims[axis]]), *dims[axis + 1 :]])


def unfolded_at(call: Call, value: ir.Value, axis: int, own: Dim, rank: int) -> ir.Value:
    """Undo ``folded_at`` on a result of ``rank`` axes whose ``axis`` has the size ``own`` in one step."""
    dims: list[Dim] = []
    for place in range(rank):
        dim = None if value.shape is None else value.shape[place]
        dims.append(dim if isinstance(dim, int) else shape_of(call.build, value, place))
    parted = shaped(call, value, [*dims[:axis], call.steps, own, *dims[axis + 1 :]])
    return transpose(call.build, parted, [axis, *range(axis), *range(axis + 1, rank + 1)])


def vector_of_all_steps(call: Call, index: int) -> ir.Value | None:
    """Return operand ``index``, a vector (None where it is absent), as one vector for all steps."""
    return None if call.given(index) is None else call.build.op("Reshape", expanded(call, index), call.build.const([-1]))


def static_steps(call: Call) -> int | None:
    """Return the number of steps where it is known."""
    outside = (one.value for one in call.operands if one is not None and one.batched)
    return next((dim for value in outside if value.shape is not None and isinstance(dim := value.shape[0], int)), None)
