"""Reject valid models that ortscan does not support.

A model is rejected if it has one of these:

* Parts that ``onnx_ir`` drops: sparse_initializer, training_info, initializers without a name, or external data in the default of
  a function's attribute.
* Values with the same name, because ``onnx_ir`` merges them.
* Parts that ``onnx_ir`` cannot represent: sparse attributes, attributes without a type, or text that is not UTF-8.
* Functions whose calls expand to more nodes than any runtime can load. onnxruntime, onnx's shape inference and inlining expand all
  calls. This module counts the nodes without expanding the calls, in time proportional to the file::

    f1 calls f0 ten times, f2 calls f1 ten times, …, the main graph calls f11    ->    10^12 nodes

* Operators that changed in an opset that ortscan does not support yet.
* An initializer of a branch of an If that has the same name as a value that the other branch captures. onnxruntime passes the
  captured value to both branches, where it replaces the initializer::

    k = {1}; If (c) <then = () <k = {2}> { a = Mul (x, k) }, else = () { b = Add (x, k) }>    multiplies by 1 on onnxruntime

Works around ORT-BRANCH-INITIALIZER.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import onnx
import onnx_ir as ir

from ortscan.modelio.protos import Body, bodies_in, holds_map
from rewrites.base.errors import UnsupportedModel
from rewrites.base.plain_text import shown
from rewrites.base.postorder import postorder
from rewrites.graph.walk import all_nodes, inner_graphs, node_graphs
from rewrites.migration.versions import NEWEST, since, versions_of

__all__ = [
    "DEEPEST_CALLS",
    "MOST_CALLED_NODES",
    "count_called_nodes",
    "refuse_ambiguous_names",
    "refuse_endless_calls",
    "refuse_newer_operators",
    "refuse_what_would_be_lost",
]

MOST_CALLED_NODES = 1 << 17
"""The maximum number of nodes to which the calls of functions may expand. onnxruntime takes minutes to load half as many."""

DEEPEST_CALLS = 100
"""The deepest nesting of function calls, as in onnx and onnxruntime."""

_A = onnx.AttributeProto
_SPARSE = (_A.SPARSE_TENSOR, _A.SPARSE_TENSORS)
_Key = tuple[str, str, str]
_MAIN = ("", "", "")
_COUNTLESS = 10**18


def refuse_what_would_be_lost(proto: onnx.ModelProto, name: str) -> None:
    """Raise UnsupportedModel if ``onnx_ir`` would lose a part of ``proto``.

    The message names this part and its location.
    """
    if proto.training_info:
        raise UnsupportedModel(f"{name} has training_info, which would be lost.")
    texts = (proto.producer_name, proto.producer_version, proto.domain, proto.doc_string)
    if not _are_utf8(*texts, *_metadata_texts(proto)):
        raise UnsupportedModel(f"{name} has a description or metadata that is not UTF-8.")
    for body, where in bodies_in(proto):
        loss = _loss_in_graph(body) if isinstance(body, onnx.GraphProto) else None
        loss = loss or _loss_in_defaults(body) or _loss_in_nodes(body)
        if loss:
            raise UnsupportedModel(f"{name}: {loss} in {where}.")


def _loss_in_graph(graph: onnx.GraphProto) -> str | None:
    infos = [info for infos in (graph.input, graph.output, graph.value_info) for info in infos]
    named = (entry.name for entries in (infos, list(graph.initializer)) for entry in entries)
    if not _are_utf8(graph.name, graph.doc_string, *named, *_metadata_texts(graph, *infos)):
        return "a name that is not UTF-8"
    if graph.sparse_initializer:
        return f"sparse initializer {graph.sparse_initializer[0].values.name!r}, which would be lost,"
    if not all(tensor.name for tensor in graph.initializer):
        return "an initializer without a name"
    for what, entries in (("initializers", graph.initializer), ("inputs", graph.input)):
        if twice := _repeated(entry.name for entry in entries):
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
        if not _are_utf8(*texts, *node.input, *node.output, *_metadata_texts(node)):
            return f"a name that is not UTF-8 at {_label(node)}"
        if not node.attribute:
            continue
        if twice := _repeated(attribute.name for attribute in node.attribute):
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


def _metadata_texts(*parts: onnx.ModelProto | onnx.GraphProto | onnx.NodeProto | onnx.ValueInfoProto) -> list[str]:
    """Return the keys and values of the metadata of ``parts``."""
    return [text for part in parts for entry in part.metadata_props for text in (entry.key, entry.value)]


def _are_utf8(*texts: str | bytes) -> bool:
    """Return True if all texts are UTF-8.

    If a text in a message is not UTF-8, protobuf returns it as bytes.
    """
    return bytes not in map(type, texts)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def refuse_endless_calls(model: onnx.ModelProto | ir.Model, name: str) -> None:
    """Raise UnsupportedModel if the calls of functions expand to too many nodes or are nested too deep.

    The limits are MOST_CALLED_NODES and DEEPEST_CALLS.

    If functions call each other in a cycle, the call that closes the cycle is not expanded. A function that is never called counts
    too, because onnx's shape inference also expands the calls in it.
    """
    count, depth = _count_and_depth(model)
    if count > MOST_CALLED_NODES:
        size = f"{count} nodes with all calls of its functions expanded"
        raise UnsupportedModel(f"{name} would have {size}; the limit is {MOST_CALLED_NODES}.")
    if depth > DEEPEST_CALLS:
        raise UnsupportedModel(f"{name} has functions that call each other {depth} deep; the limit is {DEEPEST_CALLS}.")


def count_called_nodes(model: onnx.ModelProto | ir.Model) -> int:
    """Return the number of nodes that the calls of functions in ``model`` expand to."""
    return _count_and_depth(model)[0]


def _count_and_depth(model: onnx.ModelProto | ir.Model) -> tuple[int, int]:
    if not model.functions:
        return 0, 0
    nodes = _nodes_of_proto(model) if isinstance(model, onnx.ModelProto) else _nodes_of_ir(model)
    counts: dict[_Key, int] = {}
    depths: dict[_Key, int] = {}
    for key in postorder(nodes, lambda key: [called for called in nodes[key] if called in nodes]):
        called = sum(count * counts.get(callee, 0) for callee, count in nodes[key].items())
        counts[key] = min(called + sum(nodes[key].values()), _COUNTLESS)
        depths[key] = 1 + max((depths[callee] for callee in nodes[key] if callee in depths), default=0)
    counts[_MAIN] -= sum(nodes[_MAIN].values())
    return max(counts.values()), max(depths.values()) - 1


def _nodes_of_proto(model: onnx.ModelProto) -> dict[_Key, Counter[_Key]]:
    """Count the nodes of each operator in the main graph and each function, with their nested graphs."""
    counts: dict[_Key, Counter[_Key]] = {}
    owner = _MAIN
    for body, _ in bodies_in(model):
        if isinstance(body, onnx.FunctionProto):
            owner = (body.domain, body.name, body.overload)
        counts.setdefault(owner, Counter()).update((node.domain, node.op_type, node.overload) for node in body.node)
    return counts


def _nodes_of_ir(model: ir.Model) -> dict[_Key, Counter[_Key]]:
    bodies: dict[_Key, ir.Graph | ir.Function] = {**model.functions, _MAIN: model.graph}
    return {key: Counter(node.op_identifier() for node in all_nodes(body)) for key, body in bodies.items()}


def refuse_newer_operators(model: ir.Model, name: str) -> None:
    """Raise UnsupportedModel if an operator in ``model`` changed in an opset that ortscan cannot handle.

    Also raise it if onnx does not support the model's opset. New operators are accepted, because no rule matches them.
    """
    opset = model.opset_imports.get("", 1)
    if opset <= NEWEST:
        return
    newest = onnx.defs.onnx_opset_version()
    if opset > newest:
        raise UnsupportedModel(f"{name} has opset {opset}; onnx {onnx.__version__} supports at most {newest}.")
    for node in (*all_nodes(model.graph), *(node for function in model.functions.values() for node in all_nodes(function))):
        known = versions_of(node.op_type) if node.domain == "" else ()
        if known and known[0] <= NEWEST < since(node.op_type, opset):
            changed = f"{node.op_type} '{node.name}' differs from that in {NEWEST}, the newest that ortscan supports"
            raise UnsupportedModel(f"{name} has opset {opset}, in which {changed}.")


def refuse_ambiguous_names(model: ir.Model, name: str) -> None:
    """Raise UnsupportedModel if a branch has an initializer with the name of a value in the other branch.

    The model is only rejected if the other branch captures this value from outside. Functions are not checked, because onnxruntime
    renames their initializers.
    """
    for node in all_nodes(model.graph):
        branches = node_graphs(node) if node.op_type == "If" and node.domain == "" else ()
        for branch in branches:
            names = branch.initializers.keys()
            for other in branches:
                clash = next((read for read in _captured(other) if read in names), None) if names and other is not branch else None
                if clash is not None:
                    raise UnsupportedModel(
                        f"{name}: the initializer {shown(clash)} of a branch of If {shown(node.name)} has the same name as a value "
                        "that its other branch captures, so the name is ambiguous."
                    )


def _captured(graph: ir.Graph) -> Iterator[str]:
    """Yield the names of the values that ``graph`` captures."""
    own = {graph, *inner_graphs(graph)}
    for node in all_nodes(graph):
        yield from (value.name or "" for value in node.inputs if value is not None and value.graph not in own)
