"""Emits nodes that compute affine expressions of one element, and nodes that compare the results.

The results are int64 tensors of shape [].
"""

from collections.abc import Mapping
from functools import reduce

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import AffineExpression, Dim, Symbol
from rewrites.graph.builder import Builder
from rewrites.graph.values import static_dims
from rewrites.ops.versions import reshape, shape_of

__all__ = ["emit", "emit_multiple", "exceeds", "larger", "scalar_of", "smaller"]


def emit(b: Builder, expression: AffineExpression, values: Mapping[Symbol, ir.Value] | None = None) -> ir.Value:
    """Emit nodes that compute ``expression``, which has one element.

    ``values``: maps symbols such as STEP to the values that hold them. All other symbols are values of the graph, or dimensions of
    such values.
    """
    parts = []
    for symbol in expression.terms:
        factor, part = expression.factor(symbol), _value(b, symbol, values or {})
        if factor == -1:
            part = b.op("Neg", part)
        elif factor != 1:
            part = b.op("Mul", part, _constant(b, factor))
        parts.append(part)
    const = int(expression.const.item())
    if const or not parts:
        parts.append(_constant(b, const))
    return reduce(lambda total, part: b.op("Add", total, part), parts)


def emit_multiple(b: Builder, value: ir.Value, factor: int, dtype: ir.DataType | None) -> ir.Value:
    """Emit the int64 integer ``value`` times ``factor``.

    ``dtype``: the type of the result, int32 or int64.
    """
    assert dtype is not None
    typed = value if dtype == ir.DataType.INT64 else b.op("Cast", value, to=int(dtype))
    return typed if factor == 1 else b.op("Mul", typed, b.const(np.array(factor, dtype.numpy())))


def scalar_of(b: Builder, value: ir.Value) -> ir.Value:
    """Convert an integer tensor of one element to an int64 tensor of shape []."""
    wide = value if value.dtype == ir.DataType.INT64 else b.op("Cast", value, to=int(ir.DataType.INT64))
    return wide if static_dims(value) == () else reshape(b, wide, [])


def _value(b: Builder, symbol: Symbol, values: Mapping[Symbol, ir.Value]) -> ir.Value:
    if symbol in values:
        return values[symbol]
    if isinstance(symbol, Dim):
        return scalar_of(b, shape_of(b, symbol.value, symbol.axis))
    assert isinstance(symbol, ir.Value)
    return scalar_of(b, symbol)


def _constant(b: Builder, number: int) -> ir.Value:
    return b.const(np.array(number, np.int64))


def larger(b: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Emit the larger of two numbers."""
    return b.op("Max", x, y) if b.opset >= 12 else _select(b, exceeds(b, x, y), x, y)


def smaller(b: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Emit the smaller of two numbers."""
    return b.op("Min", x, y) if b.opset >= 12 else _select(b, exceeds(b, y, x), x, y)


def exceeds(b: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Emit ``x > y``.

    Before opset 9, Greater compares no integers, so both are cast to double. Numbers beyond 2**53 may then seem equal.
    """
    if b.opset < 9:
        x, y = (b.op("Cast", value, to=int(ir.DataType.DOUBLE)) for value in (x, y))
    return b.op("Greater", x, y)


def _select(b: Builder, condition: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    """Emit ``x`` if ``condition`` is true, else ``y``.

    The selection consists of products and a sum, because opsets before 9 have no Where.
    """
    condition = b.op("Cast", condition, to=int(ir.DataType.INT64))
    other = b.op("Sub", b.const(1), condition)
    return b.op("Add", b.op("Mul", condition, x), b.op("Mul", other, y))
