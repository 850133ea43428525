"""Which operator changes in which version by more than its schema says, seen from above; ``plain_step`` does the rest."""

from rewrites.migration.lifting import attention as lifting_attention
from rewrites.migration.lifting import clip as lifting_clip
from rewrites.migration.lifting import dropout as lifting_dropout
from rewrites.migration.lifting import reduce_log_sum_exp as lifting_reduce_log_sum_exp
from rewrites.migration.lifting import split as lifting_split
from rewrites.migration.lowering import axes, constant, inputs, modes, refused, resizing, softmax, wider_meaning
from rewrites.migration.step import Rule

__all__ = ["LOWERING"]

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")

LOWERING: dict[tuple[str, int], Rule] = {
    ("Attention", 25): lifting_attention.refuse_masked_scores,
    ("BatchNormalization", 14): refused.not_in_training,
    ("BitShift", 28): wider_meaning.shift_within_width,
    ("Clip", 11): inputs.bounds_to_attributes,
    ("Clip", 12): lifting_clip.close_float16,
    ("Constant", 12): constant.value_as_tensor,
    ("DFT", 20): inputs.axis_of_dft_to_attribute,
    ("DequantizeLinear", 13): wider_meaning.single_scale,
    ("Dropout", 10): lifting_dropout.without_mask,
    ("Dropout", 12): inputs.ratio_to_attribute,
    ("GridSample", 20): modes.old_mode,
    ("GroupNormalization", 21): refused.refuse,
    ("Hardmax", 13): softmax.last_axis,
    ("LogSoftmax", 13): softmax.last_axis,
    ("Mod", 28): wider_meaning.remainder_of_its_kind,
    ("Pad", 11): inputs.pads_to_attributes,
    ("Pad", 19): wider_meaning.older_mode,
    ("QuantizeLinear", 13): wider_meaning.single_scale,
    ("ReduceLogSumExp", 28): lifting_reduce_log_sum_exp.write_plainly,
    ("ReduceSum", 13): inputs.axes_to_attribute,
    ("Reshape", 14): modes.drop_allowzero,
    ("Resize", 10): resizing.become_upsample,
    ("Resize", 11): resizing.drop_coordinates,
    ("Resize", 13): resizing.fill_in_empty,
    ("Resize", 19): wider_meaning.older_coordinates,
    ("RoiAlign", 16): modes.drop_coordinates_of_roi_align,
    ("Scan", 9): refused.refuse,
    ("ScatterElements", 11): modes.rename_scatter,
    ("ScatterElements", 18): wider_meaning.older_reduction,
    ("ScatterND", 18): wider_meaning.older_reduction,
    ("Slice", 10): inputs.operands_to_attributes,
    ("Softmax", 13): softmax.last_axis,
    ("Split", 13): lifting_split.sizes_to_attribute,
    ("Split", 18): modes.drop_number,
    ("Squeeze", 13): inputs.axes_to_attribute,
    ("TopK", 10): inputs.k_to_attribute,
    ("Unsqueeze", 13): inputs.axes_to_attribute,
    ("Upsample", 9): resizing.scales_to_attribute,
    **{(name, 8): wider_meaning.equal_shapes for name in ("Max", "Mean", "Min", "Sum")},
    **{(name, 11): axes.count_from_the_front for name in axes.COUNTED_FROM_THE_FRONT},
    **{(f"Reduce{name}", 18): inputs.axes_to_attribute for name in _REDUCTIONS},
}
"""(operator, version) -> the conversion that takes it from there to the version before."""
