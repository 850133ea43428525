"""Find defects in the tensors, declared types, imports and external references of a serialised model.

Element types must be defined, dimensions must be valid, and tensors must have the bytes that their shape needs. The content of
external data is checked when it is read.
"""

import math

import onnx
import onnx_ir as ir

from ortscan.modelio.protos import bodies_in, tensors_in
from rewrites.base.errors import ModelFileError, UnsupportedModel
from rewrites.base.plain_text import quoted

__all__ = ["refuse_defects_of_data", "refuse_defects_of_references"]

_NEWEST = (1 << 31) - 1
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
_MOST_DIGITS = 18
_MOST_AXES = 1024
"""The most axes of a tensor. numpy supports 64. In onnxruntime and onnx, time grows at least with the square of the axes."""


def refuse_defects_of_data(proto: onnx.ModelProto, name: str) -> None:
    """Raise UnsupportedModel if a tensor, a type or an import is invalid."""
    for imports in (proto.opset_import, *(function.opset_import for function in proto.functions)):
        for entry in imports:
            if not 1 <= entry.version < _NEWEST:
                raise UnsupportedModel(f"{name} imports version {entry.version} of the operator set {quoted(entry.domain)}.")
    for body, where in bodies_in(proto):
        if isinstance(body, onnx.GraphProto):
            for tensor in body.initializer:
                if defect := _defect_of_tensor(tensor):
                    raise UnsupportedModel(f"{name}: initializer {quoted(tensor.name)} in {where} {defect}.")
            for infos in (body.input, body.output, body.value_info):
                for info in infos:
                    if defect := _defect_of_type(info.type):
                        raise UnsupportedModel(f"{name}: {quoted(info.name)} in {where} {defect}.")
        for node in body.node:
            for attribute in node.attribute:
                if defect := _defect_of_attribute(attribute):
                    raise UnsupportedModel(f"{name}: {attribute.name} of {node.op_type} {quoted(node.name)} in {where} {defect}.")


def _defect_of_attribute(attribute: onnx.AttributeProto) -> str | None:
    if attribute.ref_attr_name:
        return None
    kind = attribute.type
    if kind == onnx.AttributeProto.TENSOR:
        return _defect_of_tensor(attribute.t)
    if kind == onnx.AttributeProto.TENSORS:
        return next(filter(None, map(_defect_of_tensor, attribute.tensors)), None)
    if kind == onnx.AttributeProto.TYPE_PROTO:
        return _defect_of_type(attribute.tp)
    if kind == onnx.AttributeProto.TYPE_PROTOS:
        return next(filter(None, map(_defect_of_type, attribute.type_protos)), None)
    return None


def _defect_of_tensor(tensor: onnx.TensorProto) -> str | None:
    """Return the defect of ``tensor`` as a phrase to write after its name, or None if it has no defect."""
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
    if tensor.HasField("raw_data"):
        need = math.ceil(count * ir.DataType(kind).bitwidth / 8) if kind != _T.STRING else -1
        have, what = len(tensor.raw_data), "bytes"
        if count and any(len(getattr(tensor, field)) for field in _TYPED):
            return "has its data twice"
    else:
        field = _FIELDS.get(kind, "int32_data")
        need = math.ceil(count / _FEWER_FIELDS.get(kind, 1)) * _MORE_FIELDS.get(kind, 1)
        have, what = len(getattr(tensor, field)), f"entries of {field}"
    return None if have == need else f"has {have} {what}, but its type and shape {list(tensor.dims)[:8]} need {max(need, 0)}"


def _defect_of_type(kind: onnx.TypeProto, depth: int = 0) -> str | None:
    """Return the defect of a declared type as a phrase to write after the name of the value, or None.

    A missing type is not a defect.
    """
    which = kind.WhichOneof("value")
    if depth > _DEEPEST:
        return f"has a type nested more than {_DEEPEST} deep"
    if which in ("tensor_type", "sparse_tensor_type"):
        element, axes = getattr(kind, which).elem_type, len(getattr(kind, which).shape.dim)
        if axes > _MOST_AXES:
            return f"has {axes} axes, more than {_MOST_AXES}"
        return None if element in _KINDS or element == _T.UNDEFINED else f"has the element type {element}, which is not defined"
    if which in ("sequence_type", "optional_type"):
        return _defect_of_type(getattr(kind, which).elem_type, depth + 1)
    if which == "map_type" and kind.map_type.key_type not in _KINDS:
        return f"is a map of keys of the type {kind.map_type.key_type}, which is not defined"
    if which == "map_type":
        return _defect_of_type(kind.map_type.value_type, depth + 1)
    return None


def refuse_defects_of_references(proto: onnx.ModelProto, name: str) -> None:
    """Raise ModelFileError if a reference to external data is invalid.

    A valid reference names exactly one file. If it has an offset or a length, each is given once and is a number.
    """
    for tensor in tensors_in(proto):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        keys = [entry.key for entry in tensor.external_data]
        entries = {entry.key: entry.value for entry in tensor.external_data}
        what = f"{name}: the external data of {tensor.name!r}"
        if not entries.get("location"):
            raise ModelFileError(f"{what} has no location.")
        for key in ("location", "offset", "length"):
            if keys.count(key) > 1:
                raise ModelFileError(f"{what} has {keys.count(key)} entries {key!r}.")
            if key != "location" and not _is_number(entries.get(key, "0")):
                raise ModelFileError(f"{what} has the {key} {quoted(entries[key])}, not a number of bytes.")


def _is_number(text: str | bytes) -> bool:
    """Return True if onnxruntime reads ``text`` as a number. Text that is not UTF-8 is passed as bytes."""
    return isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
