"""Convert Clip, whose bounds become inputs in version 11: scalars of the type of the data.

    Clip <min = 0, max = 6> (x)  <->  Clip (x, 0, 6)

An absent bound is the least or greatest float32, so that a float64 needs it written out; for float32 it is what an absent input
means. For float16 onnxruntime lets infinities pass up to version 11, and makes them the greatest float16 from 12 on:

    11 -> 12  Clip (x, 0)  ->  Clip (x, 0, inf)        12 -> 11  Clip (x, 0)  ->  Clip (x, 0, 65504)

Works round ORT-CLIP-HALF.
"""

import numpy as np
import onnx_ir as ir

from rewrites.migration.step import Step, Unconvertible, Written

__all__ = ["bounds_to_attributes", "bounds_to_inputs", "close_float16", "open_float16"]

_GREATEST = float(np.finfo(np.float32).max)


def bounds_to_inputs(step: Step) -> Written:
    """6 -> 11."""
    x, least, greatest = step.required(0), step.float_("min"), step.float_("max")
    dtype = step.dtype()
    if dtype == ir.DataType.DOUBLE:
        least = -_GREATEST if least is None else least
        greatest = _GREATEST if greatest is None else greatest
    elif not step.has("min") and not step.has("max"):
        return None
    bounds = [None if number is None else _bound(step, number, dtype) for number in (least, greatest)]
    return step.like([x, *bounds], min=None, max=None)


def _bound(step: Step, number: float, dtype: ir.DataType) -> ir.Value | None:
    if abs(number) >= _GREATEST and dtype in (ir.DataType.FLOAT, ir.DataType.FLOAT16) and not np.isinf(number):
        return None
    return step.scalar(number, dtype)


def bounds_to_attributes(step: Step) -> Written:
    """11 -> 10."""
    for index in (1, 2):
        step.constant(index, "bounds")
    if step.dtype() not in (ir.DataType.FLOAT, ir.DataType.FLOAT16) and None in (step.value(1), step.value(2)):
        raise Unconvertible("it has a bound that only its type knows")
    return step.like([step.required(0)], min=step.constant_float(1, "min"), max=step.constant_float(2, "max"))


def open_float16(step: Step) -> Written:
    """11 -> 12: write infinite bounds where a float16 has none."""
    return _with_bounds(step, float("inf"))


def close_float16(step: Step) -> Written:
    """12 -> 11: write the greatest and least float16 where a float16 has no bounds."""
    return _with_bounds(step, float(np.finfo(np.float16).max))


def _with_bounds(step: Step, number: float) -> Written:
    x, least, greatest = step.required(0), step.value(1), step.value(2)
    if x.dtype != ir.DataType.FLOAT16 or (least is not None and greatest is not None):
        return None
    return step.like([x, least or step.scalar(-number, x.dtype), greatest or step.scalar(number, x.dtype)])
