"""Dropout loses ``is_test`` in version 7, and its ratio becomes an input in version 12.

    6 -> 7    Dropout <is_test = 1, ratio = r> (x)  ->  Dropout <ratio = r> (x)
    7 -> 10   Dropout (x) => (y, mask)              ->  Dropout (x) => y, refused where the mask is used
    10 -> 12  Dropout <ratio = r> (x)               ->  Dropout (x, r)

A node without ``is_test`` trains before version 7 and is refused. The mask of version 7 has the type of the data, that of
version 10 is boolean; neither says what it holds in inference (onnxruntime writes zeros), while version 12 fills it with ones:
a mask that is used is refused.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step
from rewrites.migration.unconvertible import Unconvertible

__all__ = ["drop_is_test", "ratio_to_input", "without_mask"]

_DEFAULT_RATIO = 0.5


def drop_is_test(step: Step) -> Sequence[ir.Value] | None:
    """6 -> 7."""
    if not step.int_("is_test", 0):
        raise Unconvertible("it is in training mode")
    return step.like(is_test=None, consumed_inputs=None)


def without_mask(step: Step) -> Sequence[ir.Value] | None:
    """7 -> 10, and 10 -> 9: nothing changes but the mask's type, so that one that nobody reads is not given any more."""
    _refuse_masks(step)
    return step.with_outputs(1) if len(step.node.outputs) > 1 else None


def ratio_to_input(step: Step) -> Sequence[ir.Value] | None:
    """10 -> 12."""
    _refuse_masks(step)
    ratio = step.float_("ratio")
    inputs = [step.required(0)]
    if ratio is not None and ratio != _DEFAULT_RATIO:
        inputs.append(step.scalar(ratio, ir.DataType.FLOAT))
    return None if ratio is None else step.like(inputs, ratio=None)


def _refuse_masks(step: Step) -> None:
    if any(_is_read(value) for value in step.node.outputs[1:]):
        raise Unconvertible("its mask is used, and what that holds in inference was not defined before opset 12")


def _is_read(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()
