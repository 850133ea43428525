"""Map types (what ``ZipMap`` of ``ai.onnx.ml`` returns) are unknown to ``onnx_ir``: such values go through it without a type.

The interface puts the declared types of public values back; those of inner values are derived facts and are left out.
"""

import onnx

from ortscan.modelio.protos import bodies_in
from rewrites.base.errors import UnsupportedModel

__all__ = ["hide_map_types", "holds_map"]


def holds_map(kind: onnx.TypeProto) -> bool:
    """Whether ``kind`` is a map, or a sequence or optional of one."""
    if kind.HasField("sequence_type"):
        return holds_map(kind.sequence_type.elem_type)
    if kind.HasField("optional_type"):
        return holds_map(kind.optional_type.elem_type)
    return bool(kind.HasField("map_type"))


def hide_map_types(proto: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """Return a copy of ``proto`` without map types, or ``proto`` itself where it has none.

    Raises:
        UnsupportedModel: a nested graph takes or returns a map.
    """
    if not any(holds_map(info.type) for body, _ in bodies_in(proto) for info in _infos(body)):
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for body, where in bodies_in(copy):
        for number in reversed(range(len(body.value_info))):
            if holds_map(body.value_info[number].type):
                del body.value_info[number]
        for info in _infos(body):
            if not holds_map(info.type):
                continue
            if body is not copy.graph:
                raise UnsupportedModel(f"{name}: {info.name!r} in {where} is a map, which cannot be represented there.")
            info.ClearField("type")
    return copy


def _infos(body: onnx.GraphProto | onnx.FunctionProto) -> list[onnx.ValueInfoProto]:
    if isinstance(body, onnx.FunctionProto):
        return list(body.value_info)
    return [*body.input, *body.output, *body.value_info]
