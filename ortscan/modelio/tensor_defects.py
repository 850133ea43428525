"""What is wrong with a serialised tensor or type: a kind that is not defined, dimensions that are none, bytes that do not fit.

Of data in other files only the shape is looked at; what is behind a reference is looked up when it is read.
"""

import math

import onnx
import onnx_ir as ir

__all__ = ["defect_of_tensor", "defect_of_type"]

_T = onnx.TensorProto
_KINDS = frozenset(kind.value for kind in ir.DataType) - {_T.UNDEFINED}
_WIDEST = 1 << 62
_FIELDS: dict[int, str] = {
    **dict.fromkeys((_T.FLOAT, _T.COMPLEX64), "float_data"),
    **dict.fromkeys((_T.DOUBLE, _T.COMPLEX128), "double_data"),
    **dict.fromkeys((_T.UINT32, _T.UINT64), "uint64_data"),
    _T.INT64: "int64_data",
    _T.STRING: "string_data",
}
_TYPED = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")
_MORE_FIELDS: dict[int, int] = {_T.COMPLEX64: 2, _T.COMPLEX128: 2}
_FEWER_FIELDS: dict[int, int] = {_T.INT4: 2, _T.UINT4: 2, _T.FLOAT4E2M1: 2, _T.INT2: 4, _T.UINT2: 4}
_DEEPEST = 16
_MOST_AXES = 1024
"""numpy stops at 64; onnxruntime and onnx take time that grows with the square, or worse."""


def defect_of_tensor(tensor: onnx.TensorProto) -> str | None:
    """Say what is wrong with ``tensor``, in words that follow its name, or None."""
    kind = tensor.data_type
    if kind not in _KINDS:
        return f"has the element type {kind}, which is not defined"
    if len(tensor.dims) > _MOST_AXES:
        return f"has {len(tensor.dims)} axes, more than {_MOST_AXES}"
    if any(dim < 0 for dim in tensor.dims):
        return f"has the shape {list(tensor.dims)[:8]}"
    if tensor.HasField("segment"):
        return "is a segment of a tensor"
    count = math.prod(tensor.dims)
    if count > _WIDEST:
        return f"has the shape {list(tensor.dims)[:8]}, more elements than can be counted"
    if tensor.data_location == _T.EXTERNAL:
        return "is text, which cannot be external data" if kind == _T.STRING else None
    wanted = _FIELDS.get(kind, "int32_data")
    if tensor.HasField("raw_data"):
        need = math.ceil(count * ir.DataType(kind).bitwidth / 8) if kind != _T.STRING else -1
        have, what = len(tensor.raw_data), "bytes"
        if count and any(len(getattr(tensor, field)) for field in _TYPED):
            return "has its data twice"
    else:
        need = math.ceil(count / _FEWER_FIELDS.get(kind, 1)) * _MORE_FIELDS.get(kind, 1)
        have, what = len(getattr(tensor, wanted)), f"entries of {wanted}"
    return None if have == need else f"has {have} {what} where its type and shape {list(tensor.dims)[:8]} need {max(need, 0)}"


def defect_of_type(kind: onnx.TypeProto, depth: int = 0) -> str | None:
    """Say what is wrong with a declared type, in words that follow a name, or None; one that is not told is no defect."""
    which = kind.WhichOneof("value")
    if depth > _DEEPEST:
        return f"has a type nested more than {_DEEPEST} deep"
    if which in ("tensor_type", "sparse_tensor_type"):
        element, axes = getattr(kind, which).elem_type, len(getattr(kind, which).shape.dim)
        if axes > _MOST_AXES:
            return f"has {axes} axes, more than {_MOST_AXES}"
        return None if element in _KINDS or element == _T.UNDEFINED else f"has the element type {element}, which is not defined"
    if which in ("sequence_type", "optional_type"):
        return defect_of_type(getattr(kind, which).elem_type, depth + 1)
    if which == "map_type" and kind.map_type.key_type not in _KINDS:
        return f"is a map of keys of the type {kind.map_type.key_type}, which is not defined"
    if which == "map_type":
        return defect_of_type(kind.map_type.value_type, depth + 1)
    return None
