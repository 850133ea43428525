"""BatchNormalization loses ``is_test`` in version 7, ``spatial`` in version 9 and its training outputs in version 14.

    6 -> 7   BatchNormalization <is_test> (x, ...)       ->  BatchNormalization (x, ...)
    7 -> 9   BatchNormalization <spatial = 0> (x, s, ...) ->  y = BatchNormalization (Reshape (x, [0, -1]), Reshape (s, [-1]), ...)
                                                             Reshape (y, Shape (x))
    9 -> 14  BatchNormalization (x, ...) => (y)          ->  the same

In versions before 14 the number of outputs says whether the node trains: one that does is refused. Non-spatial statistics have
one element for each feature, so that features become channels.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step
from rewrites.migration.unconvertible import Unconvertible

__all__ = ["drop_is_test", "drop_spatial", "only_inference"]


def drop_is_test(step: Step) -> Sequence[ir.Value] | None:
    """6 -> 7."""
    only_inference(step)
    return step.like(is_test=None) if step.has("is_test") else None


def drop_spatial(step: Step) -> Sequence[ir.Value] | None:
    """7 -> 9."""
    if not step.has("spatial"):
        return None
    if step.int_("spatial", 1):
        return step.like(spatial=None)
    only_inference(step)
    b, x = step.builder, step.required(0)
    flat = [b.op("Reshape", x, b.const([0, -1]))]
    flat += [b.op("Reshape", step.required(index), b.const([-1])) for index in range(1, 5)]
    (result, *_) = step.like(flat, spatial=None)
    return [step.reshape_back(result, b.op("Shape", x))]


def only_inference(step: Step) -> None:
    """Refuse a node in training mode; the conversion from 9 to 14."""
    if any(value.name for value in step.node.outputs[1:]):
        raise Unconvertible("it has the outputs of training mode")
