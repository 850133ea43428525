"""Converts operators whose attributes became inputs: sizes, pads, repeats, bounds, element counts.

    5    Reshape <shape = [2, -1]> (x)               ->   Reshape (x, [2, -1])
    6    Tile (x, tiles, axis)                       ->   Tile (x, [1, tiles, 1])    (tiles and axis constant, rank known)
    10   Slice <starts = [1], ends = [3]> (x)       <->   Slice (x, [1], [3])
    10   TopK <k = 3> (x)                           <->   TopK (x, [3])
    2    Pad <paddings = [0, 1]> (x)                 ->   Pad <pads = [0, 1]> (x)
    11   Pad <pads = [0, 1], value = 2.0> (x)       <->   Pad (x, [0, 1], 2.0)
    11   Clip <min = 0, max = 6> (x)                <->   Clip (x, 0, 6)
    12   Clip (x, 0) of float16                      ->   Clip (x, 0, inf)           Clip (x, 0, 65504)  <-  Clip (x, 0)
    2    Split (x, [2, 3])                           ->   Split <split = [2, 3]> (x)
    13   Split <split = [2, 3]> (x)                 <->   Split (x, [2, 3])
    18   Split (x) => (a, b)                        <->   Split <num_outputs = 2> (x) => (a, b)

To convert to a lower version, these inputs must be constant. A node is refused if it has an input that the lower version lacks
(steps of a Slice, axes of a Pad). A Split with ``num_outputs`` is refused if its parts may differ in size.

If a bound of a Clip is an absent attribute, it means the smallest or largest float32. So a float64 needs explicit bounds. Without
bounds, onnxruntime's Clip of float16 keeps infinities up to version 11, and clips them to the largest float16 from version 12 on.

Works around ORT-CLIP-HALF.
"""

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import dim_of
from rewrites.migration.step import Rule, Step, Unconvertible, Written

__all__ = ["LIFTING", "LOWERING"]

_GREATEST = float(np.finfo(np.float32).max)


def _shape_to_input(step: Step) -> Written:
    shape = step.ints("shape")
    if shape is None:
        raise Unconvertible("it has no attribute 'shape'")
    return step.rewrite_with([step.required(0), step.builder.const(shape)], shape=None, consumed_inputs=None)


def _repeats_for_each_axis(step: Step) -> Written:
    tiles, axis, rank = step.constant_ints(1, "tiles"), step.constant_ints(2, "axis"), step.known_rank()
    if tiles is None or axis is None or len(tiles) != 1 or len(axis) != 1:
        raise Unconvertible("it needs one number of tiles and one axis")
    repeats = [1] * rank
    repeats[axis[0]] = tiles[0]
    return step.rewrite_with([step.required(0), step.builder.const(repeats)])


def _operands_to_inputs(step: Step) -> Written:
    const = step.builder.const
    inputs = [step.required(0), const(step.ints("starts") or []), const(step.ints("ends") or [])]
    axes = step.ints("axes")
    if axes:
        inputs.append(const(axes))
    return step.rewrite_with(inputs, starts=None, ends=None, axes=None)


def _operands_to_attributes(step: Step) -> Written:
    starts, ends, axes, steps = (step.constant_ints(i, what) for i, what in enumerate(("starts", "ends", "axes", "steps"), 1))
    if starts is None or ends is None:
        raise Unconvertible("it has no starts or ends")
    if steps is not None and any(size != 1 for size in steps):
        raise Unconvertible("Slice has no steps before opset 10")
    if axes is not None and any(axis < 0 for axis in axes):
        axes = [axis + step.known_rank() if axis < 0 else axis for axis in axes]
    return step.rewrite_with([step.required(0)], starts=starts, ends=ends, axes=axes)


def _k_to_input(step: Step) -> Written:
    return step.rewrite_with([step.required(0), step.builder.const([step.int_("k", 0)])], k=None)


def _k_to_attribute(step: Step) -> Written:
    k = step.constant_ints(1, "k")
    if k is None or len(k) != 1:
        raise Unconvertible("its k is not one number")
    return step.rewrite_with([step.required(0)], k=k[0])


def _rename_paddings(step: Step) -> Written:
    return step.rewrite_with(paddings=None, pads=step.ints("paddings") or [])


def _pads_to_inputs(step: Step) -> Written:
    inputs = [step.required(0), step.builder.const(step.ints("pads") or [])]
    value = step.float_("value")
    if value:
        inputs.append(step.scalar(value, step.dtype()))
    return step.rewrite_with(inputs, pads=None, value=None)


def _pads_to_attributes(step: Step) -> Written:
    return step.rewrite_with([step.required(0)], pads=step.constant_ints(1, "pads") or [], value=step.constant_float(2, "value"))


def _sizes_to_attribute(step: Step) -> Written:
    sizes = step.constant_ints(1, "sizes")
    return None if sizes is None else step.rewrite_with([step.required(0)], split=sizes)


def _sizes_to_input(step: Step) -> Written:
    sizes = step.ints("split")
    if sizes is None:
        return None
    return step.rewrite_with([step.required(0), step.builder.const(sizes)] if sizes else None, split=None)


def _number_of_parts_to_attribute(step: Step) -> Written:
    return step.rewrite_with(num_outputs=len(step.node.outputs)) if step.value(1) is None else None


def _number_of_parts_from_outputs(step: Step) -> Written:
    if not step.has("num_outputs"):
        return None
    dim = dim_of(step.required(0), step.int_("axis", 0))
    if not isinstance(dim, int) or dim % len(step.node.outputs):
        raise Unconvertible("its parts may differ in size")
    return step.rewrite_with(num_outputs=None)


def _bounds_to_inputs(step: Step) -> Written:
    x, least, greatest = step.required(0), step.float_("min"), step.float_("max")
    dtype = step.dtype()
    if dtype == ir.DataType.DOUBLE:
        least = -_GREATEST if least is None else least
        greatest = _GREATEST if greatest is None else greatest
    elif not step.has("min") and not step.has("max"):
        return None
    bounds = [None if number is None else _bound(step, number, dtype) for number in (least, greatest)]
    return step.rewrite_with([x, *bounds], min=None, max=None)


def _bound(step: Step, number: float, dtype: ir.DataType) -> ir.Value | None:
    if abs(number) >= _GREATEST and dtype in (ir.DataType.FLOAT, ir.DataType.FLOAT16) and not np.isinf(number):
        return None
    return step.scalar(number, dtype)


def _bounds_to_attributes(step: Step) -> Written:
    for index in (1, 2):
        step.constant(index, "bounds")
    if step.dtype() not in (ir.DataType.FLOAT, ir.DataType.FLOAT16) and None in (step.value(1), step.value(2)):
        raise Unconvertible("it has an absent bound, which depends on its type")
    return step.rewrite_with([step.required(0)], min=step.constant_float(1, "min"), max=step.constant_float(2, "max"))


def _add_infinite_bounds(step: Step) -> Written:
    """Convert Clip from version 11 to 12: write infinite bounds if a float16 node has no bounds."""
    return _with_bounds(step, float("inf"))


def _with_bounds(step: Step, number: float) -> Written:
    x, least, greatest = step.required(0), step.value(1), step.value(2)
    if x.dtype != ir.DataType.FLOAT16 or (least is not None and greatest is not None):
        return None
    return step.rewrite_with([x, least or step.scalar(-number, x.dtype), greatest or step.scalar(number, x.dtype)])


def _add_largest_bounds(step: Step) -> Written:
    """Convert Clip from version 12 to 11.

    If a float16 node has no bounds, write the smallest and the largest float16 as bounds.
    """
    return _with_bounds(step, float(np.finfo(np.float16).max))


LIFTING: dict[tuple[str, int], Rule] = {
    ("Clip", 11): _bounds_to_inputs,
    ("Clip", 12): _add_infinite_bounds,
    ("Pad", 2): _rename_paddings,
    ("Pad", 11): _pads_to_inputs,
    ("Reshape", 5): _shape_to_input,
    ("Slice", 10): _operands_to_inputs,
    ("Split", 2): _sizes_to_attribute,
    ("Split", 13): _sizes_to_input,
    ("Split", 18): _number_of_parts_to_attribute,
    ("Tile", 6): _repeats_for_each_axis,
    ("TopK", 10): _k_to_input,
}

LOWERING: dict[tuple[str, int], Rule] = {
    ("Clip", 11): _bounds_to_attributes,
    ("Clip", 12): _add_largest_bounds,
    ("Pad", 11): _pads_to_attributes,
    ("Slice", 10): _operands_to_attributes,
    ("Split", 13): _sizes_to_attribute,
    ("Split", 18): _number_of_parts_from_outputs,
    ("TopK", 10): _k_to_attribute,
}
