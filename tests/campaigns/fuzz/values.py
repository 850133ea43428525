"""Values of a model being drawn: a name, an element type, and sizes that are numbers or names of free sizes."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, TypeProto, ValueInfoProto, helper

__all__ = ["FLOATS", "INTS", "NARROW", "Dim", "Val", "elem_type", "numpy_type", "typed_info"]

Dim = int | str

FLOATS = ("float32", "float64", "float16")
INTS = ("int32", "int64")
NARROW = (
    "int8",
    "uint8",
    "int16",
    "uint16",
    "uint32",
    "uint64",
    "bfloat16",
    "float8e4m3fn",
    "float8e5m2",
    "int4",
    "uint4",
    "int2",
    "uint2",
)
"""Types that few operators take: for loops that only move elements."""


@dataclass(frozen=True)
class Val:
    """A value. ``dims`` is None for a sequence of tensors."""

    name: str
    dtype: str
    dims: tuple[Dim, ...] | None

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def shape(self) -> tuple[Dim, ...]:
        assert self.dims is not None, f"{self.name} is a sequence"
        return self.dims

    def of(self, dims: "tuple[Dim, ...] | None" = None, dtype: str = "") -> "Val":
        return replace(self, dims=self.dims if dims is None else dims, dtype=dtype or self.dtype)


def elem_type(dtype: str) -> int:
    named = {"float32": "FLOAT", "float64": "DOUBLE"}.get(dtype, dtype.upper())
    return int(TensorProto.DataType.Value(named))


def numpy_type(dtype: str) -> np.dtype[Any]:
    return np.dtype(object) if dtype == "string" else np.dtype(helper.tensor_dtype_to_np_dtype(elem_type(dtype)))


def typed_info(name: str, value: Val, dims: list[int | str | None] | None) -> ValueInfoProto:
    if value.dims is None:
        return onnx.helper.make_value_info(name, helper.make_sequence_type_proto(_tensor_type(value.dtype, dims)))
    return onnx.helper.make_value_info(name, _tensor_type(value.dtype, dims))


def _tensor_type(dtype: str, dims: list[int | str | None] | None) -> TypeProto:
    return helper.make_tensor_type_proto(elem_type(dtype), dims)
