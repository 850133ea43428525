"""Ask onnxruntime for entries of SessionOptions, results of constant nodes, and kernels of nodes."""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ortscan.ort.oldest import warn_of_old
from rewrites.base.errors import is_raised_by

if TYPE_CHECKING:
    import onnx
    import onnxruntime as ort

__all__ = ["entry_of", "evaluate", "has_kernel"]


def entry_of(options: "ort.SessionOptions | None", key: str) -> str | None:
    """Return the entry ``key`` of SessionOptions, or None if it is not set."""
    if options is None:
        return None
    try:
        return str(options.get_session_config_entry(key))
    except RuntimeError:
        return None


def evaluate(model: "onnx.ModelProto") -> Sequence[np.ndarray] | None:
    """Return the outputs of ``model``, which has no inputs.

    Return None if onnxruntime cannot load or run the model, or if the model might crash onnxruntime.
    """
    from ortscan.ort.integer_divisions import may_trap  # importing onnx is slow, and a start from the cache needs only entry_of

    if may_trap(model):
        return None
    try:
        results = _session(model.SerializeToString(), is_optimised=False).run(None, {})
    except Exception as error:
        if not is_raised_by(error, "onnxruntime"):
            raise
        return None
    return results if all(isinstance(result, np.ndarray) for result in results) else None


def has_kernel(model: "onnx.ModelProto") -> bool | None:
    """Return True if onnxruntime has a kernel for the only node of ``model``, and False if it has none.

    Return None if onnxruntime rejects the model for another reason.
    """
    return _has_kernel(model.SerializeToString(deterministic=True))


@functools.lru_cache(4096)
def _has_kernel(model: bytes) -> bool | None:
    from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

    try:
        _session(model)
    except NoKernel:
        return False
    except Exception as error:
        if not is_raised_by(error, "onnxruntime"):
            raise
        return None
    return True


def _session(model: bytes, *, is_optimised: bool = True) -> "ort.InferenceSession":
    import onnxruntime as ort
    from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession  # the original class, not a patched one

    warn_of_old()
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if not is_optimised:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return InferenceSession(model, options, providers=["CPUExecutionProvider"], enable_fallback=0)
