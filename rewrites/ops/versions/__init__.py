"""One reading and one writing of operators whose attributes became inputs, or whose meaning changed, from opset 8 to 28.

``emit`` writes them for the opset of the builder, the other modules read them. A reader that meets an operand that is not
constant gives ``DYNAMIC``.
"""

from rewrites.ops.versions.axes import DYNAMIC, Dynamic, axes_are_input, axes_of, axis_of, int_operand, ints_operand, keepdims
from rewrites.ops.versions.bounds import Bound, clip_bounds, dropout_is_identity
from rewrites.ops.versions.choice import where
from rewrites.ops.versions.counting import count_up
from rewrites.ops.versions.emit import (
    concat,
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
)
from rewrites.ops.versions.movement import (
    PadSpec,
    SliceSpec,
    SplitSpec,
    pad_spec,
    perm_of,
    slice_range,
    slice_spec,
    split_spec,
    zero_copies_size,
)
from rewrites.ops.versions.plain_forms import drop_absent_at_the_end, make_range_inputs_scalars, spell_out_onesided
from rewrites.ops.versions.selection import SoftmaxSpec, TopKSpec, softmax_spec, topk_spec

__all__ = [
    "DYNAMIC",
    "Bound",
    "Dynamic",
    "PadSpec",
    "SliceSpec",
    "SoftmaxSpec",
    "SplitSpec",
    "TopKSpec",
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
    "pad_spec",
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
    "topk_spec",
    "transpose",
    "turned",
    "unsqueeze",
    "where",
    "zero_copies_size",
]
