"""Computes a loop on float16 or bfloat16 in float32, so that it can have a loop plan.

    hT = Scan(h0, xs) body(h, x) => f(h, x, w)
    ->    g0, us, v = Cast <float> of h0, xs, w
          gT = Scan(g0, us) body(g, u) => Cast <float> (Cast <float16> (f(g, u, v)))
          hT = Cast <float16> (gT)

Each step still rounds its states and results to the old type. Between the nodes of a step, the numbers stay float32. onnxruntime
also computes in float32, because it has almost no CPU kernels for these types.

Conditions:

* Loop plans are allowed.
* The nodes of the body are operators of ONNX or onnxruntime, and none creates numbers of a type that an attribute names.
* The body has no sequences or optionals of the old type, and no CastLike.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.type_names import type_name
from rewrites.graph.walk import all_nodes, inner_graphs, inner_values
from rewrites.loops import Loop, ScanView, captured_values, replace_node
from rewrites.native.functions import replace_reads
from rewrites.native.operator_names import DOMAIN
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_HALVES = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16})
_DOMAINS = frozenset({"", "com.microsoft"})


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the loop computes on float16 or bfloat16."""
    if DOMAIN not in ctx.options.domains or (isinstance(loop, ScanView) and loop.batched):
        return NOTHING_HERE
    computing = [node for node in all_nodes(loop.body) if node.op_type != "Cast"]
    read = [*loop.node.inputs, *captured_values(loop.body), *(value for node in computing for value in node.inputs)]
    name = next((value.dtype for value in [*read, *loop.body.outputs] if value is not None and value.dtype in _HALVES), None)
    if name is None:
        return NOTHING_HERE
    values = [*captured_values(loop.body), *_values_of(loop.body)]
    for value in values:
        if not isinstance(value.type, ir.TensorType | None) and value.dtype in _HALVES:
            return NotApplicable("NATIVE-TYPE", f"'{value.name}' is {type_name(value.type)}")
    for node in all_nodes(loop.body):
        if node.domain not in _DOMAINS or node.op_type == "CastLike" or _creates_halves(node):
            return NotApplicable("NATIVE-TYPE", f"{node.op_type} '{node.name}' may create numbers of the type {type_name(name)}")

    def edit() -> Sequence[ir.Node]:
        return [_compute_in_float(loop, ctx)]

    return Patch(f"computes the steps in float32, and rounds states and results to {name} as before", edit)


def _values_of(body: ir.Graph) -> list[ir.Value]:
    """Return the values of the body and of its nested graphs, with their inputs and initializers."""
    graphs = [body, *inner_graphs(body)]
    own = [value for graph in graphs for value in (*graph.inputs, *graph.initializers.values())]
    return [*own, *inner_values(body)]


def _creates_halves(node: ir.Node) -> bool:
    kinds = (node.attributes.get_int(name, 0) for name in ("dtype", "output_dtype", "output_datatype"))
    return any(kind in _HALVES for kind in kinds)


def _compute_in_float(loop: Loop, ctx: Context) -> ir.Node:
    """Replace the loop by a loop on float32, with Casts before and after it, and return the new loop."""
    old, body = loop.node, loop.body
    before, after = ctx.builder(), ctx.builder()
    replace_reads(body, {value: _to_float(before, value) for value in captured_values(body) if value.dtype in _HALVES})
    operands = [_to_float(before, value) if value is not None and value.dtype in _HALVES else value for value in old.inputs]
    results = {value: int(value.dtype) for value in body.outputs if value.dtype in _HALVES}
    _convert_body(body, ctx)
    inside = ctx.builder()
    rounded = {value: _to_float(inside, inside.op("Cast", value, to=kind)) for value, kind in results.items()}
    inside.append_to(body)
    body.outputs[:] = [rounded.get(value, value) for value in body.outputs]
    attributes = list(old.attributes.values())
    del old.attributes["body"]
    outputs = [ir.Value(name=ctx.names.fresh(value.name or "result"), type=value.type, shape=value.shape) for value in old.outputs]
    node = ir.Node("", old.op_type, operands, attributes, outputs=outputs, name=old.name, version=old.version)
    replacements = dict(zip(old.outputs, outputs, strict=True))
    for value, floats in replacements.items():
        if value.dtype in _HALVES:
            floats.type = ir.TensorType(ir.DataType.FLOAT)
            replacements[value] = after.op("Cast", floats, to=int(value.dtype))
    before.insert_before(old)
    after.insert_after(old)
    replace_node(old, node, list(replacements.items()), ctx.names)
    return node


def _convert_body(body: ir.Graph, ctx: Context) -> None:
    """Give float16 values of the body the type float. A Cast from another type to float16 still rounds."""
    build = ctx.builder()
    casts = [node for node in all_nodes(body) if node.op_type == "Cast" and node.attributes.get_int("to", 0) in _HALVES]
    rounding = [
        (node, value) for node in casts if (value := node.inputs[0]) is not None and value.dtype != node.attributes.get_int("to", 0)
    ]
    for node in all_nodes(body):
        _convert_constant(node)
    for value in _values_of(body):
        if value.dtype in _HALVES:
            if value.const_value is not None:
                value.const_value = ir.tensor(value.const_value.numpy().astype(np.float32), name=value.name)
            value.type = ir.TensorType(ir.DataType.FLOAT)
    for node, value in rounding:
        node.replace_input_with(0, build.op("Cast", value, to=node.attributes.get_int("to", 0)))
        build.insert_before(node)
    for node in casts:
        node.attributes.add(ir.AttrInt64("to", int(ir.DataType.FLOAT)))


def _to_float(build: Builder, value: ir.Value) -> ir.Value:
    return build.op("Cast", value, to=int(ir.DataType.FLOAT), hint=value.name)


def _convert_constant(node: ir.Node) -> None:
    """Turn float16 numbers in the attributes of a Constant or ConstantOfShape into float32."""
    value = node.attributes.get("value")
    tensor = None if value is None or value.type != ir.AttributeType.TENSOR else value.as_tensor()
    if tensor is not None and tensor.dtype in _HALVES:
        node.attributes.add(ir.AttrTensor("value", ir.tensor(tensor.numpy().astype(np.float32), name=tensor.name)))


RULE = Rule("float-loop", "native", "loop", check, use="asked")
