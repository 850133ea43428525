"""What onnx and onnxruntime have against a model, in one line.

Works round ONNX-NEGATIVE-SIZE.
"""

import re
from collections.abc import Callable

import onnx

from ortscan.base.negative_sizes import without_negative_sizes
from rewrites.base.errors import is_raised_by

__all__ = ["checker_fault", "in_short", "said_by_onnx", "without_weights"]

_PREAMBLE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : (Non-zero status code returned while )?")
_LONGEST_MESSAGE = 300
_INNER = "Non-zero status code returned while "
"""What precedes the node that failed, and each that it is inside of."""
_AROUND = "[ShapeInferenceError] Inference error(s): "
"""What precedes each graph or function that the node is inside of which onnx cannot infer."""
_LARGE_BYTES = 1 << 16


def checker_fault(proto: onnx.ModelProto) -> str | None:
    """Return what onnx's checker, with its inference, has against a model, weights aside, in one line, or None."""
    slim = without_weights(proto)
    return said_by_onnx(lambda: onnx.checker.check_model(slim, full_check=True))


def in_short(error: Exception) -> str:
    """Return the message of an exception on one line of bounded length, without onnxruntime's preamble."""
    text = _PREAMBLE.sub("", " ".join(str(error).split())) or type(error).__name__
    if len(text) > _LONGEST_MESSAGE:
        text = text.rpartition(_INNER)[2]
        first, around, within = text.partition(_AROUND)
        text = first + around + within.replace(_AROUND, "")  # what is wrong stands at the end
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 3] + "..."


def said_by_onnx(ask: Callable[[], object]) -> str | None:
    """Return what onnx raises when it is asked, or None."""
    try:
        ask()
    except MemoryError:
        return "onnx needs more memory for it than there is"
    except Exception as error:
        if not is_raised_by(error, "onnx"):
            raise
        return f"onnx says: {in_short(error)}"
    return None


def without_weights(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy without large weights and sizes below zero, or ``proto`` itself where it has none."""
    proto = without_negative_sizes(proto)
    large = {tensor.name for tensor in proto.graph.initializer if _is_outside(tensor) or tensor.ByteSize() > _LARGE_BYTES}
    if not large:
        return proto
    slim = onnx.ModelProto()
    for owner, copy, left_out in ((proto, slim, "graph"), (proto.graph, slim.graph, "initializer")):
        for field, value in owner.ListFields():
            if field.name == left_out:
                continue
            if hasattr(value, "extend"):
                getattr(copy, field.name).extend(value)
            elif hasattr(value, "CopyFrom"):
                getattr(copy, field.name).CopyFrom(value)
            else:
                setattr(copy, field.name, value)
    listed = {info.name for info in proto.graph.input}
    for tensor in proto.graph.initializer:
        if tensor.name not in large:
            slim.graph.initializer.append(tensor)
        elif tensor.name not in listed:
            slim.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    return slim


def _is_outside(tensor: onnx.TensorProto) -> bool:
    return tensor.data_location == onnx.TensorProto.EXTERNAL
