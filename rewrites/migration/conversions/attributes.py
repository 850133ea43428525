"""Converts attributes that changed their name, type or default, and drops removed attributes.

Each row starts with an opset. On the left is the operator before this opset, on the right from this opset on. An arrow to the right
is a conversion to a newer opset, and an arrow to the left is a conversion to an older opset:

    6    Cast <to = "FLOAT"> (x)                      ->  Cast <to = 1> (x)
    2    LpPool <p = 2.0> (x)                         ->  LpPool <p = 2> (x)
    7    LSTM <output_sequence = 1> (x, w, r)         ->  LSTM (x, w, r)                  (absent outputs have no name)
    3    GRU <direction = "foward">                   ->  GRU <direction = "forward">     (the default of version 1, misspelt)
    9    MeanVarianceNormalization <across_channels>  ->  MeanVarianceNormalization <axes = [0, 1, 2, 3]>
    12   Constant <value = int64[2] {1, 2}>          <-   Constant <value_ints = [1, 2]>
    14   Reshape (x, [2, 3])                         <-   Reshape <allowzero = 1> (x, [2, 3])    (no 0 that would copy another size)
    16   RoiAlign                                    <->  RoiAlign <coordinate_transformation_mode = "output_half_pixel">
    20   GridSample <mode = "bilinear">              <->  GridSample <mode = "linear">

The equations of RNN, GRU and LSTM read ``Xt*W + Ht-1*R`` in version 1 and ``Xt*(W^T) + Ht-1*(R^T)`` in version 7. This only
corrects an error in the text: W is ``[directions, gates * hidden, input]`` in both versions, and only the transposed product fits
this shape. onnxruntime already ran MeanVarianceNormalization before onnx defined it in version 9.
"""

import onnx_ir as ir

from rewrites.graph.dims import equal, is_one_size
from rewrites.graph.values import const_array, static_dims
from rewrites.migration.step import Rule, Step, Unconvertible, Written

__all__ = ["LIFTING", "LOWERING"]

_NEW_MODES = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}
_OTHER_VALUES = ("value_int", "value_ints", "value_float", "value_floats", "value_string", "value_strings")


def _type_by_number(step: Step) -> Written:
    name = step.string("to", "")
    if name.upper() not in ir.DataType.__members__:
        raise Unconvertible(f"its attribute 'to' is '{name}', which is not an element type")
    return step.rewrite_with(to=int(ir.DataType[name.upper()]))


def _integer_norm(step: Step) -> Written:
    if step.node.op_type == "LpPool" and not step.has("kernel_shape"):
        raise Unconvertible("it has no attribute 'kernel_shape'")
    p = step.float_("p")
    if p is None:
        return None
    if p != int(p):
        raise Unconvertible(f"its attribute 'p' is {p}, but must be an integer")
    return step.rewrite_with(p=int(p))


def _drop_output_sequence(step: Step) -> Written:
    return step.rewrite_with(output_sequence=None) if step.has("output_sequence") else None


def _spell_direction(step: Step) -> Written:
    return step.rewrite_with(direction="forward") if step.string("direction", "forward") == "foward" else None


def _name_axes(step: Step) -> Written:
    if not step.int_("normalize_variance", 1):
        raise Unconvertible("its variance is not normalized")
    axes = [0, 1, 2, 3] if step.int_("across_channels", 0) else None
    return step.rewrite_with(across_channels=None, normalize_variance=None, axes=axes)


def _value_as_tensor(step: Step) -> Written:
    if not any(step.has(name) for name in _OTHER_VALUES):
        return None
    tensor = ir.convenience.get_const_tensor(step.node.outputs[0])
    if tensor is None:
        raise Unconvertible("its value cannot be read")
    return step.rewrite_with(**dict.fromkeys(_OTHER_VALUES), value=tensor)


def _drop_allowzero(step: Step) -> Written:
    """Convert Reshape from version 14 to 13. Refuse a node if a 0 in its shape may change its meaning.

    In version 13, a 0 in the shape copies the size of the same axis of the input. So each size of the result must be positive, or
    equal to the size of the same axis of the input.
    """
    if not step.int_("allowzero", 0):
        return step.rewrite_with(allowzero=None) if step.has("allowzero") else None
    if not _each_size_is_positive_or_copied(step.required(0).shape, step.node.outputs[0].shape):
        dims = static_dims(step.node.outputs[0]) if const_array(step.value(1)) is None else None
        sizes = dims or step.constant(1, "dimensions")
        if sizes is None or 0 in sizes:
            raise Unconvertible("its shape holds a 0 that means size 0")
    return step.rewrite_with(allowzero=None)


def _each_size_is_positive_or_copied(before: ir.Shape | None, after: ir.Shape | None) -> bool:
    if after is None:
        return False
    same = [is_one_size(dim) and equal(dim, own) for dim, own in zip(after.dims, before.dims if before else (), strict=False)]
    return all((isinstance(dim, int) and dim > 0) or (axis < len(same) and same[axis]) for axis, dim in enumerate(after.dims))


def _drop_coordinates_of_roi_align(step: Step) -> Written:
    if step.string("coordinate_transformation_mode", "half_pixel") != "output_half_pixel":
        raise Unconvertible("before opset 16 its coordinates are never shifted by half a pixel")
    return step.rewrite_with(coordinate_transformation_mode=None)


def _new_mode(step: Step) -> Written:
    mode = step.string("mode", "bilinear")
    return step.rewrite_with(mode=_NEW_MODES.get(mode, mode))


def _old_mode(step: Step) -> Written:
    mode = step.string("mode", "linear")
    if step.known_rank() != 4:
        raise Unconvertible("it has an input of rank 4 before opset 20")
    return step.rewrite_with(mode={new: old for old, new in _NEW_MODES.items()}.get(mode, mode))


LIFTING: dict[tuple[str, int], Rule] = {
    ("Cast", 6): _type_by_number,
    ("GlobalLpPool", 2): _integer_norm,
    ("GRU", 3): _spell_direction,
    ("GRU", 7): _drop_output_sequence,
    ("GridSample", 20): _new_mode,
    ("LSTM", 7): _drop_output_sequence,
    ("LpPool", 2): _integer_norm,
    ("MeanVarianceNormalization", 9): _name_axes,
    ("RNN", 7): _drop_output_sequence,
    ("RoiAlign", 16): lambda step: step.rewrite_with(coordinate_transformation_mode="output_half_pixel"),
    ("Scatter", 11): lambda step: step.rewrite_as("ScatterElements"),
}

LOWERING: dict[tuple[str, int], Rule] = {
    ("Constant", 12): _value_as_tensor,
    ("GridSample", 20): _old_mode,
    ("Reshape", 14): _drop_allowzero,
    ("RoiAlign", 16): _drop_coordinates_of_roi_align,
    ("ScatterElements", 11): lambda step: step.rewrite_as("Scatter"),
}
