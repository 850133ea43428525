"""What onnx's reference of an operator can be trusted with."""

import math
from typing import Any

import numpy as np
import onnx

from rewrites.not_applicable import NotApplicable

__all__ = ["reference_evaluator", "reference_runs"]

_ONLY_SINGLE = frozenset(
    {"AffineGrid", "CausalConvWithState", "GridSample", "LinearAttention", "MelWeightMatrix", "TfIdfVectorizer"}
)
"""Operators whose reference computes in float32, whatever the type."""

_CODE = "PYTHON-OP-REFERENCE"


def reference_runs(model: onnx.ModelProto) -> NotApplicable | None:
    """Say why onnx's reference does not run the one operator of ``model``, or None where it does, in the type asked for."""
    operator = model.graph.node[0].op_type
    kinds = {info.type.tensor_type.elem_type for info in (*model.graph.input, *model.graph.output)}
    if operator in _ONLY_SINGLE and onnx.TensorProto.DOUBLE in kinds:
        return NotApplicable(_CODE, f"the reference of {operator} computes in float32")
    try:
        reference_evaluator(model)
    except Exception as error:  # it raises classes of its own, and bare ones
        return NotApplicable(_CODE, (str(error).splitlines() or [type(error).__name__])[0])
    return None


def reference_evaluator(model: onnx.ModelProto) -> Any:
    """Make onnx's evaluator of ``model``, with operators put right that it computes in too narrow a type."""
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    class Erf(OpRun):
        def _run(self, x: np.ndarray) -> tuple[np.ndarray]:
            return (np.vectorize(math.erf, otypes=[np.float64])(x).astype(x.dtype).reshape(x.shape),)

    return ReferenceEvaluator(model, new_ops=[Erf])
