"""The operators that change in a version by more than their schemas say; ``plain_step`` converts all others.

``LIFTING``: (operator, version) -> the conversion that takes it there from the version before.
``LOWERING``: (operator, version) -> the conversion that takes it from there to the version before.
"""

from rewrites.migration.conversions import alignment, attributes, axes, clip, operands, refusals, resizing, training
from rewrites.migration.step import Rule

__all__ = ["LIFTING", "LOWERING"]

_REDUCTIONS = tuple(f"Reduce{name}" for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare"))
_BROADCASTING = ("Add", "And", "Div", "Equal", "Gemm", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")
_WITH_AXIS = ("ArgMax", "ArgMin", "Compress", "Concat", "Flatten", "Gather", "Split", "Hardmax", "LogSoftmax", "Softmax")
_WITH_AXES = ("ReduceSum", "Squeeze", "Unsqueeze")

LIFTING: dict[tuple[str, int], Rule] = {
    **{(name, 7): alignment.numpy_broadcasting for name in _BROADCASTING},
    **{(name, 13): axes.axes_to_input for name in _WITH_AXES},
    **{(name, 18): axes.axes_to_input for name in _REDUCTIONS},
    ("Attention", 25): refusals.refuse_masked_scores,
    ("BatchNormalization", 7): training.normalization_without_is_test,
    ("BatchNormalization", 9): training.drop_spatial,
    ("BatchNormalization", 14): training.refuse_training_outputs,
    ("Cast", 6): attributes.type_by_number,
    ("Clip", 11): clip.bounds_to_inputs,
    ("Clip", 12): clip.open_float16,
    ("Concat", 4): axes.name_axis_of_concat,
    ("DFT", 20): axes.axis_of_dft_to_input,
    ("Dropout", 7): training.dropout_without_is_test,
    ("Dropout", 10): training.dropout_without_mask,
    ("Dropout", 12): training.ratio_to_input,
    ("GlobalLpPool", 2): attributes.integer_norm,
    ("GRU", 3): attributes.spell_direction,
    ("GRU", 7): attributes.drop_output_sequence,
    ("GridSample", 20): attributes.new_mode,
    ("GroupNormalization", 21): alignment.parameters_for_each_channel,
    ("Hardmax", 13): axes.one_axis,
    ("LSTM", 7): attributes.drop_output_sequence,
    ("LogSoftmax", 13): axes.one_axis,
    ("LpPool", 2): attributes.integer_norm,
    ("MatMul", 9): alignment.vector_as_column,
    ("MeanVarianceNormalization", 9): attributes.name_axes,
    ("PRelu", 7): alignment.slope_for_each_channel,
    ("Pad", 2): operands.rename_paddings,
    ("Pad", 11): operands.pads_to_inputs,
    ("RNN", 7): attributes.drop_output_sequence,
    ("ReduceLogSum", 28): refusals.refuse_types_left_out,
    ("ReduceLogSumExp", 28): refusals.refuse_overflow,
    ("Reshape", 5): operands.shape_to_input,
    ("Resize", 11): resizing.say_coordinates,
    ("Resize", 13): resizing.leave_out_empty,
    ("RoiAlign", 16): lambda step: step.like(coordinate_transformation_mode="output_half_pixel"),
    ("Scatter", 11): lambda step: step.become("ScatterElements"),
    ("Slice", 10): operands.operands_to_inputs,
    ("Softmax", 13): axes.one_axis,
    ("Split", 2): operands.sizes_to_attribute,
    ("Split", 13): operands.sizes_to_input,
    ("Split", 18): operands.number_of_parts_to_attribute,
    ("Tile", 6): operands.repeats_for_each_axis,
    ("TopK", 10): operands.k_to_input,
    ("Upsample", 7): resizing.scales_for_each_axis,
    ("Upsample", 9): resizing.scales_to_input,
    ("Upsample", 10): lambda step: step.become("Resize"),
}

LOWERING: dict[tuple[str, int], Rule] = {
    **{(name, 8): alignment.equal_shapes for name in ("Max", "Mean", "Min", "Sum")},
    **{(name, 11): axes.count_from_the_front for name in (*_WITH_AXIS, *_WITH_AXES, *_REDUCTIONS)},
    **{(name, 13): axes.axes_to_attribute for name in _WITH_AXES},
    **{(name, 18): axes.axes_to_attribute for name in _REDUCTIONS},
    ("Attention", 25): refusals.refuse_masked_scores,
    ("BatchNormalization", 14): training.refuse_training_mode,
    ("BitShift", 28): refusals.shift_within_width,
    ("Clip", 11): clip.bounds_to_attributes,
    ("Clip", 12): clip.close_float16,
    ("Constant", 12): attributes.value_as_tensor,
    ("DFT", 20): axes.axis_of_dft_to_attribute,
    ("DequantizeLinear", 13): refusals.single_scale,
    ("Dropout", 10): training.dropout_without_mask,
    ("Dropout", 12): training.ratio_to_attribute,
    ("GridSample", 20): attributes.old_mode,
    ("GroupNormalization", 21): refusals.refuse,
    ("Hardmax", 13): axes.last_axis,
    ("LogSoftmax", 13): axes.last_axis,
    ("Mod", 28): refusals.remainder_of_its_kind,
    ("Pad", 11): operands.pads_to_attributes,
    ("Pad", 19): refusals.older_mode,
    ("QuantizeLinear", 13): refusals.single_scale,
    ("ReduceLogSumExp", 28): refusals.log_of_summed_powers,
    ("Reshape", 14): attributes.drop_allowzero,
    ("Resize", 10): resizing.become_upsample,
    ("Resize", 11): resizing.drop_coordinates,
    ("Resize", 13): resizing.fill_in_empty,
    ("Resize", 19): refusals.older_coordinates,
    ("RoiAlign", 16): attributes.drop_coordinates_of_roi_align,
    ("Scan", 9): refusals.refuse,
    ("ScatterElements", 11): lambda step: step.become("Scatter"),
    ("ScatterElements", 18): refusals.older_reduction,
    ("ScatterND", 18): refusals.older_reduction,
    ("Slice", 10): operands.operands_to_attributes,
    ("Softmax", 13): axes.last_axis,
    ("Split", 13): operands.sizes_to_attribute,
    ("Split", 18): operands.number_of_parts_from_outputs,
    ("TopK", 10): operands.k_to_attribute,
    ("Upsample", 9): resizing.scales_to_attribute,
}
