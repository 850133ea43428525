"""Before opset 11 onnx takes a size that one branch of an If tells for what both give; that is kept from it.

    If (c) then [2, 3] else [n, 3]    ->    y [2, 3] for onnx, where y is [?, 3] in truth

Results that the branches tell unlike are hidden from the If, which is told the sizes that both tell. Nothing is changed but the
model that onnx is shown.

Works round ONNX-IF-10-SIZES.
"""

from collections.abc import Sequence

import onnx
import onnx_ir as ir

from rewrites.analysis.shapes.unknown_bounds import graphs_of, opset_of
from rewrites.base import since
from rewrites.graph.dims import meet

__all__ = ["hide_unlike_branches"]

_HIDDEN = "hidden from the If: "


def hide_unlike_branches(proto: onnx.ModelProto, inferred: onnx.ModelProto) -> bool:
    """Hide from each If of ``proto`` what its branches were ``inferred`` to give unlike; return whether there is anything new."""
    if opset_of(proto) >= since.IF_SIZES_APART:
        return False
    news = False
    for graph, found in zip(graphs_of(proto.graph), graphs_of(inferred.graph), strict=True):
        for node, known in zip(graph.node, found.node, strict=True):
            if node.op_type == "If" and node.domain in ("", "ai.onnx"):
                branches = [attribute.g.output for attribute in node.attribute]
                kinds = zip(*(_kinds(attribute.g) for attribute in known.attribute), strict=False)
                for results, given in zip(zip(*branches, strict=False), kinds, strict=True):
                    if not _are_alike(given):
                        common = meet([ir.serde.deserialize_type_proto_for_shape(kind) for kind in given])
                        news |= sum(_hide(*one, common) for one in zip(results, given, strict=True)) > 0
    return news


def _kinds(branch: onnx.GraphProto) -> list[onnx.TypeProto]:
    """Return the types of what ``branch`` gives, hidden or not."""
    known = {info.name: info.type for info in branch.value_info}
    return [known.get(info.name.removeprefix(_HIDDEN), info.type) for info in branch.output]


def _are_alike(kinds: Sequence[onnx.TypeProto]) -> bool:
    if not all(kind.HasField("tensor_type") for kind in kinds):
        return True
    return len({kind.tensor_type.shape.SerializeToString() if kind.tensor_type.HasField("shape") else None for kind in kinds}) < 2


def _hide(result: onnx.ValueInfoProto, kind: onnx.TypeProto, common: ir.Shape | None) -> bool:
    """Let a branch give something of which the type and the ``common`` sizes alone are known; return whether that is new."""
    before = result.SerializeToString()
    if not result.name.startswith(_HIDDEN):
        result.name = _HIDDEN + result.name
    result.type.CopyFrom(kind)
    if common is None:
        result.type.tensor_type.ClearField("shape")
    else:
        ir.serde.serialize_shape_into(result.type, common)
    return bool(result.SerializeToString() != before)
