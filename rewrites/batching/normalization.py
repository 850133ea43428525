"""Normalisations over trailing axes or per channel, and operators that ONNX defines by others.

- Over trailing axes: the axis is shifted. If the scale or bias differs between steps, the normalisation gets a scale of ones, and
  Mul and Add follow.
- Per channel: the steps are merged into the batch axis. If the scale or bias differs between steps, they are merged into the
  channels instead: ``[N, steps * C, ...]``.
- Operators that ONNX defines by others, such as SoftmaxCrossEntropyLoss: the nodes of the definition are emitted for all steps.

Works around ORT-GROUPNORM-OF-NOTHING.
"""

from collections.abc import Sequence

import numpy as np
import onnx
import onnx.inliner
import onnx_ir as ir

from rewrites.analysis.shapes.inference import infer_model
from rewrites.batching.alignment import axis_after_steps, stacked_operand, with_rank
from rewrites.batching.call import Call, Operand, Refused, Result
from rewrites.batching.dims import (
    first_dim,
    fold_operand,
    fold_operand_at,
    product_of,
    reshape_to,
    reshape_to_steps,
    shape_tensor,
    step_dims,
    unfold_result_at,
    unfold_results,
    vector_of_all_steps,
)
from rewrites.batching.emission import Emission
from rewrites.batching.fold_into_batch import fold_batch
from rewrites.batching.table import rule
from rewrites.graph.values import const_array, dim_of, shape_dims, static_dims

__all__ = [
    "batch_normalization",
    "by_its_function",
    "group_normalization",
    "instance_normalization",
    "mean_variance_normalization",
    "skip_normalization",
    "trailing_normalization",
]


_NARROW = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16})


@rule("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
def trailing_normalization(call: Call) -> Sequence[Result]:
    """Emit the node with its axis shifted past axis 0 (the steps).

    If the scale or bias is batched, the emitted node gets a scale of ones. A Mul and an Add then apply the scale and the bias.
    """
    if not call.batched(1) and not call.batched(2):
        return call.emit(call.values, axis=axis_after_steps(call, -1))
    b, x, scale = call.build, call.operand(0), call.operand(1)
    rank = call.rank(0)
    if scale.inner.dtype in _NARROW or x.inner.dtype in _NARROW:
        raise call.refuse("PRECISION", "applying scale and bias separately would round to 16 bits first")
    axis = axis_after_steps(call, -1) - (0 if x.batched else 1)
    plain, *statistics = b.like(call.node, [x.value, _ones(call, scale.inner.dtype)], axis=axis)
    result = b.op("Mul", plain, with_rank(call, scale, max(rank, call.rank(1))))
    bias = call.optional_operand(2)
    if bias is not None:
        result = b.op("Add", result, with_rank(call, bias, rank))
    return [Result(result), *(Result(value, x.batched) for value in statistics)]


def _ones(call: Call, dtype: ir.DataType | None) -> ir.Value:
    """Return a tensor of ones with the shape that the scale has in one step."""
    scale = call.operand(1)
    if dtype is None:
        raise call.refuse("TYPE-UNKNOWN", f"the element type of {scale.inner.name!r} is not known")
    dims = static_dims(scale.inner)
    if dims is not None:
        return call.build.const(np.ones(dims, dtype.numpy()))
    call.rank(1)
    shape = shape_tensor(call.build, step_dims(call, scale))
    return call.build.op("ConstantOfShape", shape, value=ir.tensor(np.ones(1, dtype.numpy())))


@rule("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain="com.microsoft")
def skip_normalization(call: Call) -> Sequence[Result]:
    """Emit the node with the steps merged into its batch axis.

    The operand that is added to the data must have the shape of the data. The scale and the bias must be loop-invariant.
    """
    call.require_shared(*range(2, len(call.operands)))
    data, added = call.operand(0).inner, call.operand(1).inner
    dims = [(dim_of(data, axis), dim_of(added, axis)) for axis in range(call.rank(0))]
    if call.rank(0) != call.rank(1) or any(dim is None or dim != added_dim for dim, added_dim in dims):
        raise call.refuse("NO-BATCHING-RULE", "the data and the added operand differ in shape, or may differ")
    results = call.build.like(call.node, [fold_operand(call, 0), fold_operand(call, 1), *call.values[2:]])
    return unfold_results(call, results, first_dim(call, 0))


@rule("BatchNormalization")
def batch_normalization(call: Call) -> Sequence[Result]:
    """Emit the node with the steps merged into its batch axis, or into its channels.

    A node in training mode is refused, because each step computes its own statistics.
    """
    attributes = call.node.attributes
    if (
        attributes.get_int("training_mode", 0)
        or len(call.node.outputs) > 1
        or (call.opset < 9 and not attributes.get_int("spatial", 1))
    ):
        raise call.refuse("TRAINING", "it computes the statistics of the batch")
    return instance_normalization(call)


@rule("InstanceNormalization")
def instance_normalization(call: Call) -> Sequence[Result]:
    """Emit the node with the steps merged into its batch axis, or into its channels.

    The channels are necessary if the scale, the bias or the statistics differ between steps.
    """
    rank, parameters = call.rank(0), range(1, len(call.operands))
    if not any(map(call.batched, parameters)):
        return fold_batch(call)
    if rank < 2:
        raise call.refuse("NO-BATCHING-RULE", f"rank {rank}")
    values = [fold_operand_at(call, 0, 1), *(vector_of_all_steps(call, index) for index in parameters)]
    (result,) = call.build.like(call.node, values)
    return [Result(unfold_result_at(call, result, 1, step_dims(call, call.operand(0))[1], rank))]


@rule("GroupNormalization")
def group_normalization(call: Call) -> Sequence[Result]:
    """Emit the node with the steps merged into its batch axis.

    If the scale or bias differs between steps, emit the definition of the operator instead.
    """
    call.require_steps("onnxruntime's GroupNormalization infers a dimension")
    return by_its_function(call) if call.batched(1) or call.batched(2) else fold_batch(call)


@rule("MeanVarianceNormalization", since=9)
def mean_variance_normalization(call: Call) -> Sequence[Result]:
    """Emit the node with the steps merged into its channels.

    If the axes are [0, 1, 2, 3], they include the channels. Then each step becomes one channel instead. Otherwise the axes must be
    [0, 2, 3], because onnxruntime supports no others.
    """
    axes = sorted(call.node.attributes.get_ints("axes", (0, 2, 3)))
    if axes not in ([0, 2, 3], [0, 1, 2, 3]) or call.rank(0) != 4:
        raise call.refuse("NO-BATCHING-RULE", f"axes {axes} of {call.rank(0)}")
    dims = step_dims(call, call.operand(0))
    if len(axes) == 3:
        (result,) = call.build.like(call.node, [fold_operand_at(call, 0, 1)])
        return [Result(unfold_result_at(call, result, 1, dims[1], 4))]
    each = reshape_to(call, stacked_operand(call, 0), [1, call.steps, product_of(call.build, dims[:3]), dims[3]])
    (result,) = call.build.like(call.node, [each], axes=[0, 2, 3])
    return [Result(reshape_to_steps(call, result, dims))]


_CONSTANT_BYTES = 4096


@rule("CenterCropPad", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def by_its_function(call: Call) -> Sequence[Result]:
    """Emit the nodes of the operator's definition for all steps.

    The types, attributes and operands of the call determine the definition.
    """
    body, operands = _definition(call)
    emission = Emission(body, call.build, call.steps, may_be_empty=call.may_be_empty)
    for value, operand in operands.items():
        emission.replacements[value] = Operand(operand.value, operand.batched, value)
    reason = emission.add_all(body)
    if reason is not None:
        raise Refused(reason)
    computed = {value.name: emission.get(value) for value in body.outputs}
    first = next(iter(computed.values()))
    results = [computed.get(f"out{index}", first) for index in range(len(call.node.outputs))]
    return [Result(operand.value, operand.batched) for operand in results]


def _definition(call: Call) -> tuple[ir.Graph, dict[ir.Value, Operand]]:
    """Return the operator's definition as a graph, and a dictionary for the inputs of this graph.

    The dictionary maps each input of the graph to its operand in the call.
    """
    node = ir.serde.serialize_node(call.node)
    graph = onnx.GraphProto(name="definition")
    outside: dict[str, Operand] = {}
    constants: list[onnx.TensorProto] = []
    for index, operand in enumerate(call.operands):
        if operand is None:
            continue
        name = node.input[index] = f"in{index}"
        outside[name] = operand
        graph.input.append(_info(call, operand.inner, name))
        array = const_array(operand.inner, limit=_CONSTANT_BYTES)
        if array is not None:
            constants.append(onnx.numpy_helper.from_array(array, name))
    for index, output in enumerate(call.node.outputs):
        if output.name:
            node.output[index] = f"out{index}"
            graph.output.append(_info(call, output, f"out{index}"))
    graph.node.append(node)
    imports = [onnx.helper.make_opsetid("", call.opset)]
    model = onnx.helper.make_model(graph, ir_version=10, opset_imports=imports)
    inlined = onnx.inliner.inline_selected_functions(model, [("", node.op_type)], inline_schema_functions=True)
    if any(part.op_type == node.op_type for part in inlined.graph.node):
        raise call.refuse("NO-BATCHING-RULE", f"no definition in opset {call.opset}")
    for tensor in constants:
        inlined.graph.input.remove(next(value for value in inlined.graph.input if value.name == tensor.name))
    inlined.graph.initializer.extend(constants)
    body = ir.from_proto(inlined)
    infer_model(body)
    values = [*body.graph.inputs, *body.graph.initializers.values()]
    return body.graph, {value: outside[value.name] for value in values if value.name in outside}


def _info(call: Call, value: ir.Value, name: str) -> onnx.ValueInfoProto:
    if value.dtype is None:
        raise call.refuse("TYPE-UNKNOWN", f"the element type of {value.name!r} is not known")
    dims = None if value.shape is None else shape_dims(value.shape)
    return onnx.helper.make_tensor_value_info(name, int(value.dtype), dims)
