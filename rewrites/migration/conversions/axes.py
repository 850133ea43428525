"""Converts operators for which the meaning, the default or the place of their axes changed.

    13, 18   ReduceMean <axes = [1]> (x)      <->  ReduceMean (x, [1])
    20       DFT <axis = 1> (x, length)       <->  DFT (x, length, 1)
    11       Concat <axis = 1> (x, y)         <-   Concat <axis = -1> (x, y)       (rank 2)
    4        Concat (x, y)                     ->  Concat <axis = 1> (x, y)
    13       Softmax <axis = 1> (x)            ->  Reshape (Softmax <axis = -1> (Flatten <axis = 1> (x)), Shape (x))
    13       Transpose (Softmax <axis = rank - 1> (Transpose (x)))  <-  Softmax <axis = 1> (x)

Before version 13, Softmax, LogSoftmax and Hardmax normalise over ``axis`` and all later axes together. From version 13 on they
normalise over one axis. To convert to a lower version, the axes must be constant, and the rank must be known if an axis is
negative.
"""

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.values import dim_of, rank_of
from rewrites.migration.step import NotKnownHere, Rule, Step, Unconvertible, Written

__all__ = ["LIFTING", "LOWERING"]


def _axes_to_input(step: Step) -> Written:
    """Convert Squeeze, Unsqueeze and ReduceSum from version 11 to 13, other reductions from 13 to 18.

    If the attribute ``axes`` is absent or empty, the new node has no input for axes. Only an Unsqueeze requires axes.
    """
    axes = step.ints("axes")
    if axes is None:
        return None
    x = step.required(0)
    inputs = [x, step.builder.const(axes)] if axes or step.node.op_type == "Unsqueeze" else [x]
    return step.rewrite_with(inputs, axes=None)


def _axes_to_attribute(step: Step) -> Written:
    """Convert Squeeze, Unsqueeze and ReduceSum from version 13 to 12, other reductions from 18 to 17."""
    axes = step.constant_ints(1, "axes")
    if step.int_("noop_with_empty_axes", 0) and not axes:
        raise Unconvertible("it reduces nothing if it has no axes")
    attribute = axes if axes or step.node.op_type == "Unsqueeze" else None
    return step.rewrite_with([step.required(0)], axes=attribute, noop_with_empty_axes=None)


def _axis_of_dft_to_input(step: Step) -> Written:
    """Convert DFT from version 17 to 20. The default axis changes from 1 to -2."""
    axis = step.builder.const(np.asarray(step.int_("axis", 1), dtype=np.int64))
    return step.rewrite_with([step.required(0), step.value(1), axis], axis=None)


def _axis_of_dft_to_attribute(step: Step) -> Written:
    axes = step.constant_ints(2, "axis")
    return step.rewrite_with([step.required(0), step.value(1)], axis=-2 if axes is None else axes[0])


def _add_axis_of_concat(step: Step) -> Written:
    return None if step.has("axis") else step.rewrite_with(axis=1)


def _make_axes_nonnegative(step: Step) -> Written:
    changed: dict[str, int | list[int]] = {}
    if step.has("axis") and (axis := step.int_("axis", 0)) < 0:
        changed["axis"] = axis + step.known_rank()
    axes = step.ints("axes")
    if axes and min(axes) < 0:
        rank = step.known_rank() + (len(axes) if step.node.op_type == "Unsqueeze" else 0)
        changed["axes"] = [axis + rank if axis < 0 else axis for axis in axes]
    return step.rewrite_with(None, **changed) if changed else None


def _softmax_over_one_axis(step: Step) -> Written:
    b, x, axis, rank = step.builder, step.required(0), step.int_("axis", 1), step.rank()
    if rank is not None and (single := _single_axis(x, axis + rank if axis < 0 else axis, rank)) is not None:
        return step.rewrite_with(axis=single)
    if step.target < since.ALLOWZERO and not _can_be_unflattened(x, axis):
        raise NotKnownHere("sizes of its input may be 0, which Reshape supports from opset 14 on; fix the sizes or choose opset 14")
    flat = b.op("Flatten", x, axis=axis)
    return [step.reshape_back(step.rewrite_with([flat], axis=-1)[0], b.op("Shape", x))]


def _softmax_over_later_axes(step: Step) -> Written:
    b, x, rank = step.builder, step.required(0), step.known_rank()
    axis = step.int_("axis", -1)
    axis += rank if axis < 0 else 0
    if all(dim_of(x, behind) == 1 for behind in range(axis + 1, rank)):
        return step.rewrite_with(axis=axis)
    perm = [rank - 1 if i == axis else axis if i == rank - 1 else i for i in range(rank)]
    moved = step.rewrite_with([b.op("Transpose", x, perm=perm)], axis=rank - 1)[0]
    return [b.op("Transpose", moved, perm=perm)]


def _can_be_unflattened(x: ir.Value, axis: int) -> bool:
    """Return True if ``Reshape (Flatten <axis> (x), Shape (x))`` restores ``x`` even if a size is 0.

    Flatten returns a matrix. If size i of ``x`` is 0, the Reshape copies size i of this matrix, which must then be 0 too. So only
    these sizes of ``x`` may be 0:

    * the first two sizes if ``axis`` is 1
    * only the first size if ``axis`` is larger
    * only the second size if ``axis`` is 0

    All other sizes of ``x`` must be known and positive.
    """
    rank = rank_of(x)
    if rank is None:
        return False
    axis += rank if axis < 0 else 0
    copied = {0} if axis > 1 else {0, 1} if axis == 1 else {1}
    sizes = [dim_of(x, i) for i in range(rank) if i not in copied]
    return all(isinstance(size, int) and size > 0 for size in sizes)


def _single_axis(x: ir.Value, axis: int, rank: int) -> int | None:
    """Return the only axis that may have another size than 1, among ``axis`` and all later axes.

    If all these axes have size 1, return the last axis. If several may have another size, return None.
    """
    wide = [i for i in range(axis, rank) if dim_of(x, i) != 1]
    if len(wide) > 1 or axis >= rank:
        return None
    return wide[0] if wide else rank - 1


_REDUCTIONS = tuple(f"Reduce{name}" for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare"))
_WITH_AXIS = ("ArgMax", "ArgMin", "Compress", "Concat", "Flatten", "Gather", "Split", "Hardmax", "LogSoftmax", "Softmax")
_WITH_AXES = ("ReduceSum", "Squeeze", "Unsqueeze")

LIFTING: dict[tuple[str, int], Rule] = {
    **{(name, 13): _axes_to_input for name in _WITH_AXES},
    **{(name, 18): _axes_to_input for name in _REDUCTIONS},
    ("Concat", 4): _add_axis_of_concat,
    ("DFT", 20): _axis_of_dft_to_input,
    ("Hardmax", 13): _softmax_over_one_axis,
    ("LogSoftmax", 13): _softmax_over_one_axis,
    ("Softmax", 13): _softmax_over_one_axis,
}

LOWERING: dict[tuple[str, int], Rule] = {
    **{(name, 11): _make_axes_nonnegative for name in (*_WITH_AXIS, *_WITH_AXES, *_REDUCTIONS)},
    **{(name, 13): _axes_to_attribute for name in _WITH_AXES},
    **{(name, 18): _axes_to_attribute for name in _REDUCTIONS},
    ("DFT", 20): _axis_of_dft_to_attribute,
    ("Hardmax", 13): _softmax_over_later_axes,
    ("LogSoftmax", 13): _softmax_over_later_axes,
    ("Softmax", 13): _softmax_over_later_axes,
}
