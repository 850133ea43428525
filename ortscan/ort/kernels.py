"""Asks onnxruntime whether it has a kernel for a node, by making a session of that node alone."""

import functools

import onnx

from rewrites.base.errors import is_raised_by

__all__ = ["has_kernel"]


def has_kernel(model: onnx.ModelProto) -> bool | None:
    """Whether onnxruntime has a kernel for the one node of ``model``; None where it refuses the node for another reason."""
    return _asked(model.SerializeToString(deterministic=True))


@functools.lru_cache(4096)
def _asked(model: bytes) -> bool | None:
    import onnxruntime as ort
    from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession  # never the patched one
    from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        InferenceSession(model, options, providers=["CPUExecutionProvider"], enable_fallback=0)
    except NoKernel:
        return False
    except Exception as error:
        if not is_raised_by(error, "onnxruntime"):
            raise
        return None  # what else is wrong with it is wrong with the model, and not for want of a kernel
    return True
