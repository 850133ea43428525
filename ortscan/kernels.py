"""Asks onnxruntime whether it has a kernel for a node, by making a session of that node alone."""

import functools

import onnx

__all__ = ["lacks_kernel"]


def lacks_kernel(model: onnx.ModelProto) -> bool:
    """Whether onnxruntime says of the one node of ``model`` that it is not implemented; anything else it says means no."""
    return _asked(model.SerializeToString(deterministic=True))


@functools.lru_cache(4096)
def _asked(model: bytes) -> bool:
    import onnxruntime as ort
    from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession  # never the patched one
    from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        InferenceSession(model, options, providers=["CPUExecutionProvider"], enable_fallback=0)
    except NoKernel:
        return True
    except Exception:  # whatever else is wrong with it is wrong with the model too, and not for want of a kernel
        return False
    return False
