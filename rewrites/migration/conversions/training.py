"""Converts Dropout and BatchNormalization for inference. Refuses nodes in training mode.

    7    Dropout <is_test = 1> (x)                    ->  Dropout (x)
    10   Dropout (x) => (y, mask)                    <->  Dropout (x) => y, refused if the mask is used
    12   Dropout <ratio = r> (x)                     <->  Dropout (x, r)
    7    BatchNormalization <is_test> (x, ...)        ->  BatchNormalization (x, ...)
    9    BatchNormalization <spatial = 0> (x, s, ...) ->  y = BatchNormalization (Reshape (x, [0, -1]), Reshape (s, [-1]), ...)
                                                          Reshape (y, Shape (x))

Before version 7, a Dropout without ``is_test`` is in training mode. The mask of a Dropout has the type of the data in version 7,
and is boolean from version 10 on. Versions 7 and 10 do not define its elements in inference (onnxruntime writes zeros). Version 12
fills the mask with ones. Before version 14, a BatchNormalization with more than one output is in training mode. Non-spatial
statistics have one element per feature, so the features are flattened to channels.
"""

import onnx_ir as ir

from rewrites.graph.values import is_read
from rewrites.migration.step import Rule, Step, Unconvertible, Written

__all__ = ["LIFTING", "LOWERING"]

_DEFAULT_RATIO = 0.5


def _dropout_without_is_test(step: Step) -> Written:
    if not step.int_("is_test", 0):
        raise Unconvertible("it is in training mode")
    return step.rewrite_with(is_test=None, consumed_inputs=None)


def _dropout_without_mask(step: Step) -> Written:
    """Convert Dropout from version 7 to 10 or from 10 to 9: drop the mask if nothing reads it.

    The two versions differ only in the type of the mask. A node whose mask is read is refused.
    """
    _refuse_masks(step)
    return step.with_outputs(1) if len(step.node.outputs) > 1 else None


def _ratio_to_input(step: Step) -> Written:
    _refuse_masks(step)
    ratio = step.float_("ratio")
    inputs = [step.required(0)]
    if ratio is not None and ratio != _DEFAULT_RATIO:
        inputs.append(step.scalar(ratio, ir.DataType.FLOAT))
    return None if ratio is None else step.rewrite_with(inputs, ratio=None)


def _ratio_to_attribute(step: Step) -> Written:
    training = step.constant(2, "training mode")
    if training is not None and training.any():
        raise Unconvertible("it is in training mode")
    _refuse_masks(step)
    ratio = step.constant(1, "ratio")
    return step.rewrite_with([step.required(0)], ratio=None if ratio is None else float(ratio.reshape(-1)[0]), seed=None)


def _refuse_masks(step: Step) -> None:
    if any(map(is_read, step.node.outputs[1:])):
        raise Unconvertible("its mask is used, whose elements in inference were not defined before opset 12")


def _normalization_without_is_test(step: Step) -> Written:
    _refuse_training_outputs(step)
    return step.rewrite_with(is_test=None) if step.has("is_test") else None


def _drop_spatial(step: Step) -> Written:
    if not step.has("spatial"):
        return None
    if step.int_("spatial", 1):
        return step.rewrite_with(spatial=None)
    _refuse_training_outputs(step)
    b, x = step.builder, step.required(0)
    flat = [b.op("Reshape", x, b.const([0, -1]))]
    flat += [b.op("Reshape", step.required(index), b.const([-1])) for index in range(1, 5)]
    (result, *_) = step.rewrite_with(flat, spatial=None)
    return [step.reshape_back(result, b.op("Shape", x))]


def _refuse_training_outputs(step: Step) -> None:
    if any(value.name for value in step.node.outputs[1:]):
        raise Unconvertible("it has the outputs of training mode")


def _refuse_training_mode(step: Step) -> None:
    if step.int_("training_mode", 0):
        raise Unconvertible("it is in training mode")
    _refuse_training_outputs(step)


LIFTING: dict[tuple[str, int], Rule] = {
    ("BatchNormalization", 7): _normalization_without_is_test,
    ("BatchNormalization", 9): _drop_spatial,
    ("BatchNormalization", 14): _refuse_training_outputs,
    ("Dropout", 7): _dropout_without_is_test,
    ("Dropout", 10): _dropout_without_mask,
    ("Dropout", 12): _ratio_to_input,
}

LOWERING: dict[tuple[str, int], Rule] = {
    ("BatchNormalization", 14): _refuse_training_mode,
    ("Dropout", 10): _dropout_without_mask,
    ("Dropout", 12): _ratio_to_attribute,
}
