"""Shapes with the steps in front: dimensions that are numbers where they are known, and computed where they are not."""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.base import since
from rewrites.batching.call import Call, Operand
from rewrites.graph.builder import Builder
from rewrites.graph.values import dim_of
from rewrites.ops.versions import concat, reshape, shape_of

__all__ = ["Dim", "fold_steps", "product_of", "shape_tensor", "shaped", "step_dims", "unfold_steps", "with_steps"]

Dim = int | ir.Value
"""A dimension: a number, or a one-element int64 tensor."""


def step_dims(call: Call, operand: Operand) -> list[Dim]:
    """Return the per-step dimensions of ``operand``, whose rank is known."""
    assert operand.rank is not None
    found: list[Dim] = []
    for axis in range(operand.rank):
        dim = dim_of(operand.inner, axis)
        found.append(dim if isinstance(dim, int) else shape_of(call.build, operand.value, axis + operand.batched))
    return found


def product_of(b: Builder, dims: Sequence[Dim]) -> Dim:
    """Multiply dimensions."""
    number, computed = 1, [dim for dim in dims if isinstance(dim, ir.Value)]
    for dim in dims:
        number *= dim if isinstance(dim, int) else 1
    if not computed or number == 0:
        return number
    total = computed[0]
    for dim in computed[1:]:
        total = b.op("Mul", total, dim)
    return total if number == 1 else b.op("Mul", total, b.const([number]))


def shape_tensor(b: Builder, dims: Sequence[Dim]) -> ir.Value:
    """Return a shape as a 1-D int64 tensor."""
    parts: list[ir.Value] = []
    numbers: list[int] = []
    for dim in [*dims, None]:
        if isinstance(dim, int):
            numbers.append(dim)
            continue
        if numbers:
            parts.append(b.const(numbers))
        numbers = []
        if dim is not None:
            parts.append(dim)
    return concat(b, parts, axis=0)


def shaped(call: Call, x: ir.Value, dims: Sequence[Dim]) -> ir.Value:
    """Reshape ``x`` to ``dims``; where one of them is computed and no other is 0, it is left to be inferred."""
    if sum(isinstance(dim, ir.Value) for dim in dims) <= 1 and 0 not in dims:
        return reshape(call.build, x, [dim if isinstance(dim, int) else -1 for dim in dims])
    return _exact(call, x, dims)


def with_steps(call: Call, x: ir.Value, dims: Sequence[Dim]) -> ir.Value:
    """Reshape ``x`` to the steps followed by ``dims``, which together hold all its elements.

    Nothing is left to infer where a dimension may be 0: -1 beside a 0 is an error.
    """
    if all(isinstance(dim, int) and dim > 0 for dim in dims):
        return reshape(call.build, x, [-1, *(dim for dim in dims if isinstance(dim, int))])
    return _exact(call, x, [call.steps, *dims])


def fold_steps(call: Call, x: ir.Value, dims: Sequence[Dim]) -> ir.Value:
    """Merge the steps into the first per-step axis: ``[steps, *dims]`` becomes ``[steps * dims[0], *dims[1:]]``."""
    if len(dims) == 2:
        return call.build.op("Flatten", x, axis=2)
    rest = [dim for dim in dims[1:] if isinstance(dim, int) and dim > 0]
    if len(rest) == len(dims) - 1:
        return reshape(call.build, x, [-1, *rest])
    return _exact(call, x, [product_of(call.build, [call.steps, dims[0]]), *dims[1:]])


def unfold_steps(call: Call, y: ir.Value, first: Dim, rank: int) -> ir.Value:
    """Undo ``fold_steps`` on a result ``y`` of ``rank`` axes whose axis 0 is the steps times ``first``."""
    rest: list[Dim] = []
    for axis in range(1, rank):
        dim = dim_of(y, axis)
        rest.append(dim if isinstance(dim, int) else shape_of(call.build, y, axis))
    return with_steps(call, y, [first, *rest])


def _exact(call: Call, x: ir.Value, dims: Sequence[Dim]) -> ir.Value:
    shape = shape_tensor(call.build, dims)
    return call.build.op("Reshape", x, shape, allowzero=1 if call.opset >= since.ALLOWZERO else None)
