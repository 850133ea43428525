"""A body made ready to be run many times: as compiled numpy expressions, by onnxruntime, or by onnx's reference operators.

The first that can run it is taken. numpy comes first only for bodies of elementwise operators, where it has the least to do for a
step; onnxruntime has most operators; what it has no kernel for, onnx's reference has.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx

from ortscan.base.quiet import quietly
from ortscan.custom_ops.elementwise import compiled
from ortscan.errors import UnsupportedModel
from rewrites.base.raised_by import is_raised_by
from rewrites.python_ops.reference import reference_evaluator

__all__ = ["Body", "prepared_body"]

Body = Callable[[Sequence[np.ndarray]], Sequence[Any]]

_NARROW = frozenset(
    onnx.TensorProto.DataType.Value(name)
    for name in ("BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "INT4", "UINT4")
)


@quietly
def prepared_body(model: onnx.ModelProto) -> Body:
    """Return what runs ``model`` on its inputs in order. Raises UnsupportedModel where nothing can."""
    by_numpy = compiled(model)
    if by_numpy is not None:
        return by_numpy
    return _by_onnxruntime(model) or _by_reference(model)


def _by_onnxruntime(model: onnx.ModelProto) -> Body | None:
    import onnxruntime as ort
    from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession  # never the patched one

    if any(info.type.tensor_type.elem_type in _NARROW for info in (*model.graph.input, *model.graph.output)):
        return None
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"], enable_fallback=0)
    except Exception as error:
        if not is_raised_by(error, "onnxruntime"):
            raise
        return None  # the reference is asked next
    names = [info.name for info in model.graph.input]
    wanted = [info.name for info in model.graph.output]
    return lambda values: session.run(wanted, dict(zip(names, values, strict=True)))


def _by_reference(model: onnx.ModelProto) -> Body:
    try:
        evaluator = reference_evaluator(model)
    except Exception as error:
        if not is_raised_by(error, "onnx", "numpy"):
            raise
        said = str(error).splitlines()[0]
        raise UnsupportedModel(f"neither onnxruntime nor onnx's reference operators run what is called: {said}") from error
    names = [info.name for info in model.graph.input]
    return lambda values: list(evaluator.run(None, dict(zip(names, values, strict=True))))
