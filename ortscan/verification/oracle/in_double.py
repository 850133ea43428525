"""Copy the original with float64 instead of narrower floats.

The results of the copy are almost free of rounding errors.

    x (float) ─► MatMul ─► y (float)        ->        x (double) ─► MatMul ─► y (double)

If onnxruntime has no float64 kernel for a node, the node computes in float32, and Casts convert its inputs and outputs.
Each recurrent node is replaced by a Scan that computes the same equations. A product of 8-bit integers is replaced by a product
of float64, which is exact.

Works around ORT-SATURATED-PRODUCTS.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from ortscan.modelio import inline_functions
from ortscan.modelio.protos import hide_map_types, holds_map
from ortscan.modelio.refusals import count_called_nodes
from ortscan.modelio.source import ModelSource, changed_source, initializer_bytes, model_of
from ortscan.ort.sessions import has_kernel
from ortscan.running.analysis import if_readable
from ortscan.verification.oracle.runnable import with_scans
from rewrites.analysis.shapes.inference import infer_model
from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.context import Context, Options
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import shape_dims
from rewrites.graph.walk import all_nodes, inner_graphs, node_graphs
from rewrites.python_ops.missing_kernels import node_model

__all__ = ["feed_in_double", "in_double"]

_MOST_INLINED = 20_000
_LARGEST = 256 << 20
"""The most bytes of weights of a model that is converted."""
_NARROW = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_RECURRENT = ("RNN", "GRU", "LSTM")
_BY_TYPE = ("BitCast", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial")
"""Operators that keep their types, because they compute another result for a wider type."""


def in_double(source: ModelSource, stack: ExitStack) -> ModelSource | None:
    """Return a copy of the model with float64 instead of narrower floats.

    Return None if the model is too large or cannot be read. `feed_in_double` converts the inputs for the copy.
    """
    if initializer_bytes(source.proto) > _LARGEST or count_called_nodes(source.proto) > _MOST_INLINED:
        return None
    widened = if_readable(lambda: _widened(source))
    return None if widened is None else with_scans(changed_source(source, widened, stack), stack)


def feed_in_double(feed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs ``feed`` with their narrower floats converted to float64."""

    def widened(value: Any) -> Any:
        if isinstance(value, list):
            return [widened(item) for item in value]
        is_narrow = isinstance(value, np.ndarray) and value.dtype.name in ("float32", "float16", "bfloat16")
        return value.astype(np.float64) if is_narrow else value

    return {name: widened(value) for name, value in feed.items()}


def _widened(source: ModelSource) -> onnx.ModelProto:
    model = model_of(replace(source, proto=hide_map_types(source.proto, "the model")))
    inline_functions(model, lambda _: True)
    infer_model(model)
    ctx = Context.of(model, Options(), lambda _: None, has_kernel)
    graphs = [model.graph, *inner_graphs(model.graph)]
    kinds = {value: value.dtype for graph in graphs for value in _values(graph) if value.dtype in _NARROW}
    for value in (value for graph in graphs for value in _values(graph)):
        value.type = _wide(value.type)
        if value.const_value is not None and value in kinds:
            value.const_value = _tensor_in_double(value.const_value)
    for node in list(all_nodes(model.graph)):
        if not _keeps_its_type(node):
            _widen_attributes(node)
        if node.op_type == "MatMulInteger" and node.domain == "":
            _multiply_exactly(node, ctx)
        elif any(value in kinds for value in (*node.inputs, *node.outputs)) and not node_graphs(node):
            if _keeps_its_type(node):
                _put_between_casts(node, kinds, ctx)
            elif node.op_type not in _RECURRENT and not _runs(node, ctx):
                _put_between_casts(node, dict.fromkeys(kinds, ir.DataType.FLOAT), ctx)
    wide = ir.to_proto(model)
    for output, original in zip(wide.graph.output, source.proto.graph.output, strict=True):
        if holds_map(original.type):
            output.type.CopyFrom(original.type)
    return wide


def _values(graph: ir.Graph) -> list[ir.Value]:
    return list(dict.fromkeys([*graph.inputs, *graph.initializers.values(), *(value for node in graph for value in node.outputs)]))


def _keeps_its_type(node: ir.Node) -> bool:
    return node.domain not in ("", "ai.onnx") or node.op_type in _BY_TYPE


def _runs(node: ir.Node, ctx: Context) -> bool:
    model = node_model(node, ctx)
    return isinstance(model, NotApplicable) or bool(has_kernel(model))


def _wide(kind: Any) -> Any:
    if isinstance(kind, ir.SequenceType | ir.OptionalType):
        return type(kind)(_wide(kind.elem_type))
    return ir.TensorType(ir.DataType.DOUBLE) if isinstance(kind, ir.TensorType) and kind.dtype in _NARROW else kind


def _tensor_in_double(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    return ir.tensor(tensor.numpy().astype(np.float64), name=tensor.name) if tensor.dtype in _NARROW else tensor


def _widen_attributes(node: ir.Node) -> None:
    """Convert the float tensors in the attributes of a node to float64.

    If an attribute such as ``to`` is the type of the results, change it to float64 too.
    """
    for name, attribute in list(node.attributes.items()):
        if attribute.type == ir.AttributeType.TENSOR:
            node.attributes[name] = ir.AttrTensor(name, _tensor_in_double(attribute.as_tensor()))
        elif name in ("to", "dtype", "output_dtype") and attribute.as_int() in _NARROW:
            node.attributes[name] = ir.AttrInt64(name, int(ir.DataType.DOUBLE))
        elif name in ("value_float", "value_floats"):
            number = np.asarray(attribute.value, np.float64)
            del node.attributes[name]
            node.attributes["value"] = ir.AttrTensor("value", ir.tensor(number))


def _put_between_casts(node: ir.Node, kinds: Mapping[ir.Value, ir.DataType], ctx: Context) -> None:
    """Put Casts before the inputs and after the outputs of a node that should not compute in float64.

    ``kinds``: the type that the node needs for each value instead of float64.
    """
    before, after = ctx.builder(), ctx.builder()
    for position, value in enumerate(node.inputs):
        if value is not None and value in kinds:
            node.replace_input_with(position, before.op("Cast", value, to=int(kinds[value])))
    before.insert_before(node)
    for value in node.outputs:
        if value in kinds and value.name:
            wide = after.op("Cast", value, to=int(ir.DataType.DOUBLE))
            replace_value(value, wide, ctx.names)
            cast = wide.producer()
            assert cast is not None
            cast.replace_input_with(0, value)
            wide.type, value.type = value.type, ir.TensorType(kinds[value])
    after.insert_after(node)


def _multiply_exactly(node: ir.Node, ctx: Context) -> None:
    """Replace a MatMulInteger by a MatMul of float64.

    Keep the MatMulInteger if the zero point of its first operand is not a scalar.
    """
    rows, columns, *zeros = [*node.inputs, None, None][:4]
    if zeros[0] is not None and len(shape_dims(zeros[0].shape) if zeros[0].shape is not None else "?") > 0:
        return
    build = ctx.builder()
    factors = []
    for value, zero in zip((rows, columns), zeros, strict=True):
        wide = build.op("Cast", value, to=int(ir.DataType.DOUBLE))
        factors.append(wide if zero is None else build.op("Sub", wide, build.op("Cast", zero, to=int(ir.DataType.DOUBLE))))
    product = build.op("Cast", build.op("MatMul", *factors), to=int(ir.DataType.INT32))
    build.insert_before(node)
    replace_value(node.outputs[0], product, ctx.names)
    remove_nodes([node])
