"""Writes an affine expression of one element as nodes: an int64 without axes."""

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import Affine, Dim, Symbol
from rewrites.graph.builder import Builder
from rewrites.graph.values import static_dims
from rewrites.ops.versions import reshape, shape_of

__all__ = ["emit", "scalar_of", "times"]


def emit(b: Builder, expression: Affine, values: Mapping[Symbol, ir.Value] | None = None) -> ir.Value:
    """Return the value of ``expression``; ``values`` has that of symbols which are no value by themselves."""
    parts = []
    for symbol in expression.terms:
        factor, part = expression.factor(symbol), _value(b, symbol, values or {})
        if factor == -1:
            part = b.op("Neg", part)
        elif factor != 1:
            part = b.op("Mul", part, _number(b, factor))
        parts.append(part)
    const = int(expression.const.reshape(-1)[0])
    if not parts:
        return _number(b, const)
    total = parts[0]
    for part in parts[1:]:
        total = b.op("Add", total, part)
    return b.op("Add", total, _number(b, const)) if const else total


def times(b: Builder, numbers: ir.Value, step: int, kind: ir.DataType | None) -> ir.Value:
    """Return int64 ``numbers`` times ``step``, as ``kind``: int32 or int64."""
    assert kind is not None
    typed = numbers if kind == ir.DataType.INT64 else b.op("Cast", numbers, to=int(kind))
    return typed if step == 1 else b.op("Mul", typed, b.const(np.array(step, kind.numpy())))


def scalar_of(b: Builder, value: ir.Value) -> ir.Value:
    """Return a one-element integer as an int64 without axes."""
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
