"""Constant inputs become the attributes they were: axes, bounds, sizes, pads, scales.

    Squeeze (x, [1])       ->  Squeeze <axes = [1]> (x)
    Clip (x, 0, 6)         ->  Clip <min = 0, max = 6> (x)
    Slice (x, [1], [3])    ->  Slice <starts = [1], ends = [3], axes = [0]> (x)
    Pad (x, [0, 1], 2.0)   ->  Pad <pads = [0, 1], value = 2.0> (x)
    TopK (x, [3])          ->  TopK <k = 3> (x)
    Dropout (x, 0.1)       ->  Dropout <ratio = 0.1> (x)
    DFT (x, length, 1)     ->  DFT <axis = 1> (x, length)

What is not constant, or has no counterpart (steps of a Slice, axes of a Pad, training mode), is refused.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.migration.step import Step
from rewrites.migration.unconvertible import Unconvertible

__all__ = [
    "axes_to_attribute",
    "axis_of_dft_to_attribute",
    "bounds_to_attributes",
    "k_to_attribute",
    "operands_to_attributes",
    "pads_to_attributes",
    "ratio_to_attribute",
]


def axes_to_attribute(step: Step) -> Sequence[ir.Value] | None:
    """Squeeze, Unsqueeze, ReduceSum: 13 -> 12; other reductions: 18 -> 17."""
    axes = step.constant(1, "axes")
    noop = step.int_("noop_with_empty_axes", 0)
    if noop and (axes is None or axes.size == 0):
        raise Unconvertible("it reduces nothing where it has no axes")
    given = None if axes is None or (axes.size == 0 and step.node.op_type != "Unsqueeze") else _ints(axes)
    return step.like([step.required(0)], axes=given, noop_with_empty_axes=None)


def bounds_to_attributes(step: Step) -> Sequence[ir.Value] | None:
    """Clip: 11 -> 10."""
    least, greatest = step.constant(1, "bounds"), step.constant(2, "bounds")
    if step.dtype() not in (ir.DataType.FLOAT, ir.DataType.FLOAT16) and None in (step.value(1), step.value(2)):
        raise Unconvertible("it has a bound that only its type knows")
    bounds = {"min": least, "max": greatest}
    numbers = {name: None if bound is None else _float(bound, name) for name, bound in bounds.items()}
    return step.like([step.required(0)], **numbers)


def operands_to_attributes(step: Step) -> Sequence[ir.Value] | None:
    """Slice: 10 -> 9."""
    starts, ends, axes, steps = (step.constant(i, what) for i, what in enumerate(("starts", "ends", "axes", "steps"), 1))
    if starts is None or ends is None:
        raise Unconvertible("it has no starts or ends")
    if steps is not None and (steps != 1).any():
        raise Unconvertible("Slice has no steps before opset 10")
    if axes is not None and (axes < 0).any():
        axes = np.where(axes < 0, axes + step.known_rank(), axes)
    given = None if axes is None else _ints(axes)
    return step.like([step.required(0)], starts=_ints(starts), ends=_ints(ends), axes=given)


def pads_to_attributes(step: Step) -> Sequence[ir.Value] | None:
    """Pad: 11 -> 10."""
    pads, value = step.constant(1, "pads"), step.constant(2, "value")
    number = None if value is None or value.size == 0 else _float(value, "value")
    return step.like([step.required(0)], pads=[] if pads is None else _ints(pads), value=number)


def k_to_attribute(step: Step) -> Sequence[ir.Value] | None:
    """TopK: 10 -> 9."""
    k = step.constant(1, "k")
    if k is None or k.size != 1:
        raise Unconvertible("its k is not one number")
    return step.like([step.required(0)], k=_ints(k)[0])


def ratio_to_attribute(step: Step) -> Sequence[ir.Value] | None:
    """Dropout: 12 -> 11."""
    training = step.constant(2, "training mode")
    if training is not None and training.any():
        raise Unconvertible("it is in training mode")
    if any(value.uses() or value.is_graph_output() for value in step.node.outputs[1:]):
        raise Unconvertible("its mask is used, and what that holds in inference was not defined before opset 12")
    ratio = step.constant(1, "ratio")
    return step.like([step.required(0)], ratio=None if ratio is None else float(ratio.reshape(-1)[0]), seed=None)


def axis_of_dft_to_attribute(step: Step) -> Sequence[ir.Value] | None:
    """DFT: 20 -> 19."""
    axis = step.constant(2, "axis")
    return step.like([step.required(0), step.value(1)], axis=-2 if axis is None else int(axis.reshape(-1)[0]))


def _ints(array: np.ndarray) -> list[int]:
    return [int(item) for item in array.reshape(-1)]


def _float(array: np.ndarray, name: str) -> float:
    number = array.reshape(-1)[0]
    if np.float32(number) != number and not np.isnan(number):
        raise Unconvertible(f"its '{name}' is no float32, which an attribute is")
    return float(number)
