"""Convert operators whose attributes became inputs: sizes, pads, repeats, numbers of elements.

    5    Reshape <shape = [2, -1]> (x)               ->   Reshape (x, [2, -1])
    6    Tile (x, tiles, axis)                       ->   Tile (x, [1, tiles, 1])    (tiles and axis constant, rank known)
    10   Slice <starts = [1], ends = [3]> (x)       <->   Slice (x, [1], [3])
    10   TopK <k = 3> (x)                           <->   TopK (x, [3])
    2    Pad <paddings = [0, 1]> (x)                 ->   Pad <pads = [0, 1]> (x)
    11   Pad <pads = [0, 1], value = 2.0> (x)       <->   Pad (x, [0, 1], 2.0)
    2    Split (x, [2, 3])                           ->   Split <split = [2, 3]> (x)
    13   Split <split = [2, 3]> (x)                 <->   Split (x, [2, 3])
    18   Split (x) => (a, b)                        <->   Split <num_outputs = 2> (x) => (a, b)

On the way down, inputs must be constant. Inputs that the older version lacks are refused (steps of a Slice, axes of a Pad), as is a
``num_outputs`` whose parts may differ in size.
"""

from rewrites.graph.values import dim_of
from rewrites.migration.step import Step, Unconvertible, Written

__all__ = [
    "k_to_attribute",
    "k_to_input",
    "number_of_parts_from_outputs",
    "number_of_parts_to_attribute",
    "operands_to_attributes",
    "operands_to_inputs",
    "pads_to_attributes",
    "pads_to_inputs",
    "rename_paddings",
    "repeats_for_each_axis",
    "shape_to_input",
    "sizes_to_attribute",
    "sizes_to_input",
]


def shape_to_input(step: Step) -> Written:
    """Reshape: 1 -> 5."""
    shape = step.ints("shape")
    if shape is None:
        raise Unconvertible("it has no attribute 'shape'")
    return step.like([step.required(0), step.builder.const(shape)], shape=None, consumed_inputs=None)


def repeats_for_each_axis(step: Step) -> Written:
    """Tile: 1 -> 6."""
    tiles, axis, rank = step.constant_ints(1, "tiles"), step.constant_ints(2, "axis"), step.known_rank()
    if tiles is None or axis is None or len(tiles) != 1 or len(axis) != 1:
        raise Unconvertible("it needs one number of tiles and one axis")
    repeats = [1] * rank
    repeats[axis[0]] = tiles[0]
    return step.like([step.required(0), step.builder.const(repeats)])


def operands_to_inputs(step: Step) -> Written:
    """Slice: 1 -> 10."""
    const = step.builder.const
    inputs = [step.required(0), const(step.ints("starts") or []), const(step.ints("ends") or [])]
    axes = step.ints("axes")
    if axes:
        inputs.append(const(axes))
    return step.like(inputs, starts=None, ends=None, axes=None)


def operands_to_attributes(step: Step) -> Written:
    """Slice: 10 -> 9."""
    starts, ends, axes, steps = (step.constant_ints(i, what) for i, what in enumerate(("starts", "ends", "axes", "steps"), 1))
    if starts is None or ends is None:
        raise Unconvertible("it has no starts or ends")
    if steps is not None and any(size != 1 for size in steps):
        raise Unconvertible("Slice has no steps before opset 10")
    if axes is not None and any(axis < 0 for axis in axes):
        axes = [axis + step.known_rank() if axis < 0 else axis for axis in axes]
    return step.like([step.required(0)], starts=starts, ends=ends, axes=axes)


def k_to_input(step: Step) -> Written:
    """TopK: 1 -> 10."""
    return step.like([step.required(0), step.builder.const([step.int_("k", 0)])], k=None)


def k_to_attribute(step: Step) -> Written:
    """TopK: 10 -> 9."""
    k = step.constant_ints(1, "k")
    if k is None or len(k) != 1:
        raise Unconvertible("its k is not one number")
    return step.like([step.required(0)], k=k[0])


def rename_paddings(step: Step) -> Written:
    """Pad: 1 -> 2."""
    return step.like(paddings=None, pads=step.ints("paddings") or [])


def pads_to_inputs(step: Step) -> Written:
    """Pad: 2 -> 11."""
    inputs = [step.required(0), step.builder.const(step.ints("pads") or [])]
    value = step.float_("value")
    if value:
        inputs.append(step.scalar(value, step.dtype()))
    return step.like(inputs, pads=None, value=None)


def pads_to_attributes(step: Step) -> Written:
    """Pad: 11 -> 10."""
    return step.like([step.required(0)], pads=step.constant_ints(1, "pads") or [], value=step.constant_float(2, "value"))


def sizes_to_attribute(step: Step) -> Written:
    """Split: 1 -> 2, and 13 -> 12."""
    sizes = step.constant_ints(1, "sizes")
    return None if sizes is None else step.like([step.required(0)], split=sizes)


def sizes_to_input(step: Step) -> Written:
    """Split: 2 -> 13."""
    sizes = step.ints("split")
    if sizes is None:
        return None
    return step.like([step.required(0), step.builder.const(sizes)] if sizes else None, split=None)


def number_of_parts_to_attribute(step: Step) -> Written:
    """Split: 13 -> 18."""
    return step.like(num_outputs=len(step.node.outputs)) if step.value(1) is None else None


def number_of_parts_from_outputs(step: Step) -> Written:
    """Split: 18 -> 17."""
    if not step.has("num_outputs"):
        return None
    dim = dim_of(step.required(0), step.int_("axis", 0))
    if not isinstance(dim, int) or dim % len(step.node.outputs):
        raise Unconvertible("its parts may differ in size")
    return step.like(num_outputs=None)
