"""Refuses models that ``onnx_ir`` would silently damage: what it drops or merges is looked for in the protobuf first.

Dropped by it: sparse_initializer, training_info, initializers without a name. Merged: things that share a name which must be
unique. Not representable: sparse attributes, attributes without a type, bytes that are not UTF-8.
External data in the default of a function's attribute would be left behind. Data is never read.
"""

from collections import Counter
from collections.abc import Iterable

import onnx

from ortscan.modelio.map_types import holds_map
from ortscan.modelio.protos import Body, bodies_in
from rewrites.base.errors import UnsupportedModel

__all__ = ["refuse_what_would_be_lost"]

_A = onnx.AttributeProto
_SPARSE = (_A.SPARSE_TENSOR, _A.SPARSE_TENSORS)


def refuse_what_would_be_lost(proto: onnx.ModelProto, name: str) -> None:
    """Raise UnsupportedModel, naming what and where, if ``proto`` holds something that would not survive."""
    if proto.training_info:
        raise UnsupportedModel(f"{name} holds training_info, which would be lost.")
    texts = (proto.producer_name, proto.producer_version, proto.domain, proto.doc_string)
    if not _are_utf8(*texts, *_noted(proto)):
        raise UnsupportedModel(f"{name} says of itself what is not UTF-8.")
    for body, where in bodies_in(proto):
        loss = _loss_in_graph(body) if isinstance(body, onnx.GraphProto) else None
        loss = loss or _loss_in_defaults(body) or _loss_in_nodes(body)
        if loss:
            raise UnsupportedModel(f"{name}: {loss} in {where}.")


def _loss_in_graph(graph: onnx.GraphProto) -> str | None:
    infos = [info for infos in (graph.input, graph.output, graph.value_info) for info in infos]
    named = (entry.name for entries in (infos, list(graph.initializer)) for entry in entries)
    if not _are_utf8(graph.name, graph.doc_string, *named, *_noted(graph, *infos)):
        return "a name that is not UTF-8"
    if graph.sparse_initializer:
        return f"sparse initializer {graph.sparse_initializer[0].values.name!r}, which would be lost,"
    if not all(tensor.name for tensor in graph.initializer):
        return "an initializer without a name"
    for what, names in (
        ("initializers", [tensor.name for tensor in graph.initializer]),
        ("inputs", [info.name for info in graph.input]),
    ):
        if twice := _repeated(names):
            return f"two {what} named {twice!r}"
    return None


def _loss_in_defaults(body: Body) -> str | None:
    for attribute in body.attribute_proto if isinstance(body, onnx.FunctionProto) else ():
        if any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in (attribute.t, *attribute.tensors)):
            return f"external data in default {attribute.name!r}"
    return None


def _loss_in_nodes(body: Body) -> str | None:
    for node in body.node:
        texts = (node.op_type, node.domain, node.name, node.overload, node.doc_string)
        if not _are_utf8(*texts, *node.input, *node.output, *_noted(node)):
            return f"a name that is not UTF-8 at {_label(node)}"
        if not node.attribute:
            continue
        if twice := _repeated([attribute.name for attribute in node.attribute]):
            return f"two attributes {twice!r} of {_label(node)}"
        for attribute in node.attribute:
            if loss := _loss_in_attribute(attribute):
                return f"{loss} {attribute.name!r} of {_label(node)}"
    return None


def _label(node: onnx.NodeProto) -> str:
    return f"{node.op_type} {node.name!r}"


def _loss_in_attribute(attribute: onnx.AttributeProto) -> str | None:
    if attribute.ref_attr_name:
        return None
    if attribute.type == _A.UNDEFINED:
        return "attribute without a type,"
    if attribute.type in _SPARSE:
        return "sparse attribute"
    if attribute.type == _A.STRINGS and not all(_is_utf8(text) for text in attribute.strings):
        return "strings that are not UTF-8 in attribute"
    if any(holds_map(kind) for kind in (attribute.tp, *attribute.type_protos)):
        return "map type in attribute"
    return None


def _repeated(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _noted(*parts: onnx.ModelProto | onnx.GraphProto | onnx.NodeProto | onnx.ValueInfoProto) -> list[str]:
    """Return the metadata of parts of a model."""
    return [text for part in parts for entry in part.metadata_props for text in (entry.key, entry.value)]


def _are_utf8(*texts: str | bytes) -> bool:
    """Whether texts of a message are, which come as bytes where they are not."""
    return bytes not in map(type, texts)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
