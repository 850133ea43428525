"""Return the errors that onnx and onnxruntime report about a model, each as one line.

Works around ONNX-NEGATIVE-SIZE.
"""

import re
from collections.abc import Callable

import onnx

from ortscan.base.proto_graphs import without_initializers, without_negative_sizes
from rewrites.base.errors import is_raised_by

__all__ = ["checker_fault", "error_of_onnx", "in_short", "without_weights"]

_PREAMBLE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : (Non-zero status code returned while )?")
_SOURCE = re.compile(r"\S*[/\\]onnxruntime[/\\]core[/\\]\S+:\d+ (?:[^()]*\([^()]*\)(?: const)?(?: \[with [^]]*\])? )?")
"""A file of onnxruntime's source, the line and the function, which precede the reason in a message."""
_LONGEST_MESSAGE = 300
_INNER = "Non-zero status code returned while "
"""The text that precedes the node that failed, and each node that contains it."""
_AROUND = "[ShapeInferenceError] Inference error(s): "
"""The text that precedes each graph or function that contains the node that onnx cannot infer."""
_LARGE_BYTES = 1 << 16


def checker_fault(proto: onnx.ModelProto) -> str | None:
    """Return the error that onnx's checker or shape inference reports for a model, or None.

    The checker and shape inference run on a copy of the model without large weights.
    """
    slim = without_weights(proto)
    return error_of_onnx(lambda: onnx.checker.check_model(slim, full_check=True))


def in_short(error: Exception) -> str:
    """Return the message of an exception as one line of limited length.

    onnxruntime's prefix and the names of its source files are left out.
    """
    text = _SOURCE.sub("", _PREAMBLE.sub("", " ".join(str(error).split()))) or type(error).__name__
    if len(text) > _LONGEST_MESSAGE:
        text = text.rpartition(_INNER)[2]
        first, around, within = text.partition(_AROUND)
        text = first + around + within.replace(_AROUND, "")  # the reason is at the end
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 3] + "..."


def error_of_onnx(ask: Callable[[], object]) -> str | None:
    """Call ``ask`` and return the message of the error that onnx raises, or None if it raises none."""
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
    """Return a copy of ``proto`` in which large weights are inputs and negative sizes are free.

    Return ``proto`` itself if it has neither large weights nor negative sizes.
    """
    proto = without_negative_sizes(proto)
    external = onnx.TensorProto.EXTERNAL
    initializers = proto.graph.initializer
    large = {tensor.name for tensor in initializers if tensor.data_location == external or tensor.ByteSize() > _LARGE_BYTES}
    return without_initializers(proto, large) if large else proto
