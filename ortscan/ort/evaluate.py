"""Runs a small model without inputs on onnxruntime, for folding constants."""

from collections.abc import Sequence

import numpy as np
import onnx

from ortscan.ort.integer_divisions import may_trap
from rewrites.base.errors import is_raised_by

__all__ = ["evaluate"]


def evaluate(model: onnx.ModelProto) -> Sequence[np.ndarray] | None:
    """Return the model's outputs, or None where onnxruntime cannot load or run it, or might end the process."""
    if may_trap(model):
        return None
    import onnxruntime as ort
    from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession  # never the patched one

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"], enable_fallback=0)
        results = session.run(None, {})
    except Exception as error:
        if not is_raised_by(error, "onnxruntime"):
            raise
        return None
    return results if all(isinstance(result, np.ndarray) for result in results) else None
