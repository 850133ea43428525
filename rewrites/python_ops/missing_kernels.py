"""Runs a node in a wider type if its own type has no kernel, provided that the results are the same.

    y = Tanh (x) of bfloat16    ->    y = Cast (Tanh (Cast (x, float)), bfloat16)

The wide type represents every number of the narrow type. Processors without bfloat16 also compute it in float32, and onnxruntime
computes float16 in float32 too. When integers are cast back, they wrap around, as they would in the narrow type. This rewrite needs
no Python, so it is tried before a call to Python.

This module also builds models of a single node or body. They are used to test if the runtime has a kernel. Calls to Python run such
models.
"""

import copy
from collections.abc import Sequence

import onnx
import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.type_names import type_name

__all__ = ["body_model", "missing_kernel", "node_model", "run_wider"]


def missing_kernel(node: ir.Node, ctx: Context) -> bool:
    """Return True if the runtime has no kernel for ``node``. Return False if a type is unknown."""
    if ctx.has_kernel is None:
        return False
    model = node_model(node, ctx)
    return not isinstance(model, NotApplicable) and ctx.has_kernel(model) is False


def node_model(node: ir.Node, ctx: Context) -> onnx.ModelProto | NotApplicable:
    """Return a model that contains only ``node``, with one input for each value that ``node`` reads.

    Return a reason if an input or output of ``node`` is not a tensor of a known type.
    """
    inputs = list(dict.fromkeys(value for value in node.inputs if value is not None))
    outputs = [value for value in node.outputs if value.name]
    for value in (*inputs, *outputs):
        if not isinstance(value.type, ir.TensorType):
            return NotApplicable("PYTHON-OP-TYPE", f"'{value.name}' is {type_name(value.type)}")
    names = {value: f"v{number}" for number, value in enumerate([*inputs, *outputs])}
    proto = ir.serde.serialize_node(node)
    proto.name = proto.doc_string = ""
    del proto.input[:], proto.output[:], proto.metadata_props[:]
    proto.input.extend(names[value] if value is not None else "" for value in node.inputs)
    proto.output.extend(names.get(value, "") for value in node.outputs)
    return _make_model(
        [proto], [_value_info(v, names[v]) for v in inputs], [_value_info(v, names[v]) for v in outputs], node.op_type, ctx
    )


def body_model(body: ir.Graph, captures: Sequence[ir.Value], ctx: Context) -> onnx.ModelProto:
    """Return a model whose graph is ``body``, which must have no nested graphs.

    ``captures``: the outer values that ``body`` reads. They become inputs of the model.
    """
    nodes = [ir.serde.serialize_node(node) for node in body]
    for proto in nodes:
        proto.name = proto.doc_string = ""
        del proto.metadata_props[:]
    inputs = [_value_info(value, value.name or "") for value in (*body.inputs, *captures)]
    return _make_model(nodes, inputs, [_value_info(value, value.name or "") for value in body.outputs], "body", ctx)


def _make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    name: str,
    ctx: Context,
) -> onnx.ModelProto:
    graph = onnx.helper.make_graph(list(nodes), name, list(inputs), list(outputs))
    return onnx.helper.make_model(
        graph, ir_version=max(ctx.model.ir_version, 8), opset_imports=[onnx.helper.make_opsetid("", ctx.opset)]
    )


def _value_info(value: ir.Value, name: str) -> onnx.ValueInfoProto:
    """Return the type and rank of ``value`` under the name ``name``.

    Its sizes are left out, because their names have no meaning in another model.
    """
    plain = ir.Value(name=name, type=copy.copy(value.type), shape=None)
    if value.shape is not None:
        plain.shape = ir.Shape([None] * len(value.shape))
    return ir.serde.serialize_value(plain)


_WIDER = {
    ir.DataType.BFLOAT16: ir.DataType.FLOAT,
    ir.DataType.INT8: ir.DataType.INT32,
    ir.DataType.UINT8: ir.DataType.INT32,
    ir.DataType.INT16: ir.DataType.INT32,
    ir.DataType.UINT16: ir.DataType.INT32,
    ir.DataType.UINT32: ir.DataType.INT64,
}
_BY_TYPE = frozenset({"Cast", "CastLike", "BitCast", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "BitShift"})


def run_wider(node: ir.Node, ctx: Context) -> str | None:
    """Let ``node`` run in a wider type, between Casts, and return a sentence on the change.

    If the operator has no kernel in a wider type either, change nothing and return None.
    """
    narrow = next((value.dtype for value in (*node.inputs, *node.outputs) if value is not None and value.dtype in _WIDER), None)
    if narrow is None or node.op_type in _BY_TYPE or ctx.has_kernel is None:
        return None
    if any(attribute.name in ("dtype", "to", "stash_type") or attribute.is_ref() for attribute in node.attributes.values()):
        return None
    if node.op_type == "Pow" and narrow != ir.DataType.BFLOAT16:
        return None
    wide = _WIDER[narrow]
    build = ctx.builder()
    inputs = [
        build.op("Cast", value, to=int(wide)) if value is not None and value.dtype == narrow else value for value in node.inputs
    ]
    wide_results = build.like(node, inputs)
    for old, new in zip(node.outputs, wide_results, strict=True):
        new.type = ir.TensorType(wide) if old.dtype == narrow else old.type
        new.shape = old.shape
    wide_node = wide_results[0].producer()
    assert wide_node is not None
    model = node_model(wide_node, ctx)
    if isinstance(model, NotApplicable) or not ctx.has_kernel(model):
        build.discard()
        return None
    results = [
        build.op("Cast", new, to=int(narrow), hint=old.name) if old.dtype == narrow else new
        for old, new in zip(node.outputs, wide_results, strict=True)
    ]
    build.insert_before(node)
    for old, new in zip(node.outputs, results, strict=True):
        new.type, new.shape = old.type, old.shape
        replace_value(old, new, ctx.names)
    remove_nodes([node])
    return f"it runs in {type_name(wide)}, between casts"
