"""Elementwise operators with numpy's broadcasting, and operators that return their input in inference.

``f(x, y)`` -> ``f(x', y')``. If a batched operand has fewer axes than another operand, axes of size 1 are inserted after axis 0.

A Clip with a bound that differs between steps is emitted as two Wheres, as ONNX defines Clip:

    Clip(x, lo, hi)    ->    y = Where(x < lo, lo, x);  z = Where(hi < y, hi, y)
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.batching.alignment import aligned_operands, stacked_operand
from rewrites.batching.call import Call, Result
from rewrites.batching.table import rule
from rewrites.graph.type_names import type_name
from rewrites.ops.traits import operators
from rewrites.ops.versions import dropout_is_identity

__all__ = ["broadcasting", "cast_like", "clip", "dropout", "fast_gelu", "parametric_relu"]


@rule(*operators("elementwise") - {"CastLike", "Clip", "PRelu"}, "BitCast", "Det", "RegexFullMatch", "StringConcat")
@rule("Gelu", "QuickGelu", domain="com.microsoft")
def broadcasting(call: Call) -> Sequence[Result]:
    """Emit the node with all operands aligned so that each step broadcasts as before."""
    return call.emit(aligned_operands(call))


@rule("PRelu")
def parametric_relu(call: Call) -> Sequence[Result]:
    """Emit the node with data and slope aligned so that each step broadcasts as before.

    PRelu broadcasts only the slope. Therefore loop-invariant data are repeated for every step.
    """
    if not call.batched(0):
        return call.emit([stacked_operand(call, 0), aligned_operands(call)[1]])
    return call.emit(aligned_operands(call))


@rule("BiasGelu", "FastGelu", domain="com.microsoft")
def fast_gelu(call: Call) -> Sequence[Result]:
    """Emit the node on the data of all steps. The bias must be loop-invariant.

    The operator accepts a bias only as a vector along the last axis.
    """
    call.require_invariant(1)
    return call.emit(call.values)


@rule("CastLike")
def cast_like(call: Call) -> Sequence[Result]:
    """Emit the node. The result is batched if and only if the first operand is batched.

    The second operand may be batched or not, because the operator only reads its type.
    """
    return [Result(value, call.batched(0)) for value in call.build.like(call.node, call.values)]


@rule("Dropout")
def dropout(call: Call) -> Sequence[Result]:
    """Emit an Identity, because a Dropout in inference returns its input.

    If the node also returns the mask, emit ``Dropout(x')`` instead. Refuse a node that may be in training mode.
    """
    if not dropout_is_identity(call.node, call.opset):
        raise call.refuse("RANDOM", "training_mode may be true")
    x = call.operand(0)
    count = len(call.node.outputs)
    values = call.build.ops("Identity" if count == 1 else "Dropout", [x.value], count)
    return [Result(value, x.batched) for value in values]


_COMPARED = frozenset(
    {
        ir.DataType.FLOAT,
        ir.DataType.DOUBLE,
        ir.DataType.INT8,
        ir.DataType.INT32,
        ir.DataType.INT64,
        ir.DataType.UINT8,
        ir.DataType.UINT32,
    }
)


@rule("Clip")
def clip(call: Call) -> Sequence[Result]:
    """Emit a Clip if its bounds are loop-invariant, otherwise two Wheres (see the module docstring)."""
    if not call.batched(1) and not call.batched(2):
        return call.emit(call.values)
    dtype = call.operand(0).inner.dtype
    if dtype is None or dtype not in _COMPARED:
        raise call.refuse("NO-BATCHING-RULE", f"bounds that differ between steps, of element type {type_name(dtype)}")
    x, low, high = [*aligned_operands(call), None][:3]
    assert x is not None
    b, limits = call.build, _limits(dtype)
    low, high = (b.const(limit) if bound is None else bound for bound, limit in zip((low, high), limits, strict=True))
    x = b.op("Where", b.op("Less", x, low), low, x)
    return [Result(b.op("Where", b.op("Less", high, x), high, x))]


def _limits(dtype: ir.DataType) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest finite number of ``dtype``.

    They are the bounds of a Clip whose bounds are absent. So such a Clip makes infinite numbers finite.
    """
    kind = dtype.numpy()
    info = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
    return np.array(info.min, dtype=kind), np.array(info.max, dtype=kind)
