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

__all__ = ["emit", "exceeds", "larger", "scalar_of", "smaller", "times"]


def emit(b: Builder, expression: AffineExpression, values: Mapping[Symbol, ir.Value] | None = None) -> ir.Value:
    """Emit nodes that compute ``expression``, which has one element.

    ``values``: the values of symbols such as STEP. Any other symbol is a dimension or a value of the graph.
    """
    parts = []
    for symbol in expression.terms:
        factor, part = expression.factor(symbol), _value(b, symbol, values or {})
        if factor == -1:
            part = b.op("Neg", part)
        elif factor != 1:
            part = b.op("Mul", part, _number(b, factor))
        parts.append(part)
    const = int(expression.const.item())
    if const or not parts:
        parts.append(_number(b, const))
    return reduce(lambda total, part: b.op("Add", total, part), parts)


def times(b: Builder, numbers: ir.Value, step: int, kind: ir.DataType | None) -> ir.Value:
    """Emit ``numbers`` (int64) times ``step``. The result has the type ``kind`` (int32 or int64)."""
    assert kind is not None
    typed = numbers if kind == ir.DataType.INT64 else b.op("Cast", numbers, to=int(kind))
    return typed if step == 1 else b.op("Mul", typed, b.const(np.array(step, kind.numpy())))


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


def _number(b: Builder, number: int) -> ir.Value:
    return b.const(np.array(number, np.int64))


def larger(b: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Emit the larger of two numbers."""
    return b.op("Max", x, y) if b.opset >= 12 else _chosen(b, exceeds(b, x, y), x, y)


def smaller(b: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Emit the smaller of two numbers."""
    return b.op("Min", x, y) if b.opset >= 12 else _chosen(b, exceeds(b, y, x), x, y)


def exceeds(b: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Emit ``x > y``.

    Before opset 9, Greater compares no integers, so both are cast to double. Numbers beyond 2**53 may then seem equal.
    """
    if b.opset < 9:
        x, y = (b.op("Cast", value, to=int(ir.DataType.DOUBLE)) for value in (x, y))
    return b.op("Greater", x, y)


def _chosen(b: Builder, first: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    """Emit ``x`` if ``first`` is true, else ``y``.

    This emits products, because opsets before 9 have no Where.
    """
    first = b.op("Cast", first, to=int(ir.DataType.INT64))
    other = b.op("Sub", b.const(1), first)
    return b.op("Add", b.op("Mul", first, x), b.op("Mul", other, y))
