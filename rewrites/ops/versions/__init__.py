"""One reader and one writer for operators that changed between opset 8 and 28, such as attributes that became inputs.

``emit`` writes them for the opset of the builder, the other modules read them. A reader returns ``DYNAMIC`` for an operand that is
not constant.
"""

from rewrites.ops.versions.attributes import (
    DYNAMIC,
    Bound,
    Dynamic,
    SoftmaxSpec,
    axes_are_input,
    axes_of,
    axis_of,
    clip_bounds,
    dropout_is_identity,
    int_operand,
    ints_operand,
    keepdims,
    softmax_spec,
)
from rewrites.ops.versions.emit import (
    concat,
    count_up,
    gather,
    reduce,
    reshape,
    shape_of,
    slice_axis,
    split,
    squeeze,
    transpose,
    turned,
    unsqueeze,
    where,
)
from rewrites.ops.versions.movement import SliceSpec, SplitSpec, perm_of, slice_range, slice_spec, split_spec, zero_copies_size
from rewrites.ops.versions.plain_forms import drop_absent_at_the_end, make_range_inputs_scalars, spell_out_onesided

__all__ = [
    "DYNAMIC",
    "Bound",
    "Dynamic",
    "SliceSpec",
    "SoftmaxSpec",
    "SplitSpec",
    "axes_are_input",
    "axes_of",
    "axis_of",
    "clip_bounds",
    "concat",
    "count_up",
    "drop_absent_at_the_end",
    "dropout_is_identity",
    "gather",
    "int_operand",
    "ints_operand",
    "keepdims",
    "make_range_inputs_scalars",
    "perm_of",
    "reduce",
    "reshape",
    "shape_of",
    "slice_axis",
    "slice_range",
    "slice_spec",
    "softmax_spec",
    "spell_out_onesided",
    "split",
    "split_spec",
    "squeeze",
    "transpose",
    "turned",
    "unsqueeze",
    "where",
    "zero_copies_size",
]
