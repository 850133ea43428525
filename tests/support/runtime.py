"""onnxruntime for tests: quiet, one thread, and with every element type numpy can hold (bfloat16 and float8 by ml_dtypes)."""

import ctypes
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort

__all__ = ["AnyModel", "TypedSequence", "Value", "numpy_dtype", "ort_run", "ort_session", "run_session"]

AnyModel = onnx.ModelProto | ir.Model | bytes | str | os.PathLike[str]


class TypedSequence(list[np.ndarray]):
    """A sequence of tensors that knows its element type even when empty."""

    def __init__(self, items: list[np.ndarray], dtype: np.dtype[Any]):
        super().__init__(items)
        self.dtype = dtype


Value = np.ndarray | TypedSequence


def numpy_dtype(elem_type: int) -> np.dtype[Any]:
    """Return the numpy dtype of an ONNX element type. Strings are objects."""
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(elem_type))


def ort_session(model: AnyModel, *, optimised: bool = True) -> ort.InferenceSession:
    """Return a session on the CPU with one thread and no messages below errors."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(_source(model), options, providers=["CPUExecutionProvider"])


def _source(model: AnyModel) -> bytes | str | Path:
    if isinstance(model, ir.Model):
        model = ir.to_proto(model)
    if isinstance(model, onnx.ModelProto):
        return model.SerializeToString()
    return Path(model) if isinstance(model, os.PathLike) else model


def ort_run(model: AnyModel, feeds: Mapping[str, Any], *, optimised: bool = True) -> list[Any]:
    """The outputs of `model` for `feeds`, in the order of the graph's outputs. The sessions of the last few models are kept."""
    source = _source(model)
    session = _kept_session(source, optimised) if isinstance(source, bytes) else ort_session(source, optimised=optimised)
    return run_session(session, feeds)


@lru_cache(maxsize=4)
def _kept_session(model: bytes, optimised: bool) -> ort.InferenceSession:
    return ort_session(model, optimised=optimised)


def run_session(session: ort.InferenceSession, feeds: Mapping[str, Any]) -> list[Any]:
    """Run like `session.run(None, feeds)`, for all element types."""
    types = [_elem_type(info.type) for info in session.get_outputs()]
    narrow = any(_is_narrow(numpy_dtype(t)) for t in types)
    if not narrow and not any(_is_narrow(f.dtype) for f in feeds.values() if isinstance(f, np.ndarray)):
        results = session.run(None, dict(feeds))
    else:
        results = [_from_ort(v) for v in session.run_with_ort_values(None, {k: _to_ort(v) for k, v in feeds.items()})]
    return [TypedSequence(r, numpy_dtype(t)) if isinstance(r, list) else r for r, t in zip(results, types, strict=True)]


def _elem_type(type_text: str) -> int:
    """Return the element type: `seq(tensor(float))` -> FLOAT."""
    return int(onnx.TensorProto.DataType.Value(type_text.rstrip(")").split("(")[-1].upper()))


def _is_narrow(dtype: np.dtype[Any]) -> bool:
    """Return True if `session.run` refuses the dtype (those of ml_dtypes)."""
    return dtype.kind == "V" or dtype.name.startswith(("bfloat", "float8"))


def _to_ort(array: np.ndarray) -> ort.OrtValue:
    if not _is_narrow(array.dtype):
        return ort.OrtValue.ortvalue_from_numpy(array)
    raw = np.ascontiguousarray(array).reshape(array.shape).view(f"u{array.itemsize}")
    elem_type = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, elem_type)


def _from_ort(value: ort.OrtValue) -> np.ndarray:
    dtype = numpy_dtype(value.element_type())
    if not _is_narrow(dtype):
        return np.asarray(value.numpy())
    raw = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    return np.frombuffer(raw, dtype).reshape(value.shape()).copy()
