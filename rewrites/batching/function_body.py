"""Operators that are functions of others, by the definition that ONNX gives them, which is how ORT runs them too.

``SoftmaxCrossEntropyLoss(x, t)`` -> LogSoftmax, Gather, ..., each for all steps at once.
"""

from collections.abc import Sequence

import onnx
import onnx.inliner
import onnx_ir as ir

from rewrites.analysis.shapes.inference import infer_model
from rewrites.batching.call import Call, Operand, Refused, Result
from rewrites.batching.table import rule
from rewrites.graph.values import const_array, shape_dims

__all__ = ["by_its_function"]

_CONSTANT_BYTES = 4096


@rule("CenterCropPad", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def by_its_function(call: Call) -> Sequence[Result]:
    """Emit the nodes of the definition, as it is for the types, attributes and operands at hand."""
    from rewrites.batching.emission import Emission

    body, operands = _definition(call)
    emission = Emission(body, call.build, call.steps, may_be_empty=call.may_be_empty)
    for value, operand in operands.items():
        emission.known[value] = Operand(operand.value, operand.batched, value)
    reason = emission.add_all(body)
    if reason is not None:
        raise Refused(reason)
    found = {value.name: emission.get(value) for value in body.outputs}
    first = next(iter(found.values()))
    results = [found.get(f"out{place}", first) for place in range(len(call.node.outputs))]
    return [Result(operand.value, operand.batched) for operand in results]


def _definition(call: Call) -> tuple[ir.Graph, dict[ir.Value, Operand]]:
    """Return the definition as a graph, and what stands outside for each of its inputs."""
    node = ir.serde.serialize_node(call.node)
    graph = onnx.GraphProto(name="definition")
    given: dict[str, Operand] = {}
    constants: list[onnx.TensorProto] = []
    for index, operand in enumerate(call.operands):
        if operand is None:
            continue
        name = node.input[index] = f"in{index}"
        given[name] = operand
        graph.input.append(_info(call, operand.inner, name))
        array = const_array(operand.inner, limit=_CONSTANT_BYTES)
        if array is not None:
            constants.append(onnx.numpy_helper.from_array(array, name))
    for place, output in enumerate(call.node.outputs):
        if output.name:
            node.output[place] = f"out{place}"
            graph.output.append(_info(call, output, f"out{place}"))
    graph.node.append(node)
    imports = [onnx.helper.make_opsetid("", call.opset)]
    model = onnx.helper.make_model(graph, ir_version=10, opset_imports=imports)
    inlined = onnx.inliner.inline_selected_functions(model, [("", node.op_type)], inline_schema_functions=True)
    if any(one.op_type == node.op_type for one in inlined.graph.node):
        raise call.refuse("NO-BATCHING-RULE", f"no definition in opset {call.opset}")
    for tensor in constants:
        inlined.graph.input.remove(next(value for value in inlined.graph.input if value.name == tensor.name))
    inlined.graph.initializer.extend(constants)
    body = ir.from_proto(inlined)
    infer_model(body)
    values = [*body.graph.inputs, *body.graph.initializers.values()]
    return body.graph, {value: given[value.name] for value in values if value.name in given}


def _info(call: Call, value: ir.Value, name: str) -> onnx.ValueInfoProto:
    if value.dtype is None:
        raise call.refuse("TYPE-UNKNOWN", f"the element type of {value.name!r} is not known")
    dims = None if value.shape is None else shape_dims(value.shape)
    return onnx.helper.make_tensor_value_info(name, int(value.dtype), dims)
