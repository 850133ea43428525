"""Repair an original that onnxruntime computes wrongly, so that its results can be the reference.

The body of a Scan may return the same value as two outputs, or return one of its inputs. This is valid, but onnxruntime then
returns uninitialised memory. The body of a Loop may stack its step number, but onnxruntime then returns the number of the last
step for all steps. An Identity for each such output repairs the model:

    body (s, x) => (s, n, n)      ->      body (s, x) => (s', n, n')   with  s' = Identity(s),  n' = Identity(n)
    body (i, c, s) => (c, s, i)   ->      body (i, c, s) => (c, s, i') with  i' = Identity(i)

The body of a Loop may return the same strings as two outputs, or return an Identity of strings. When onnxruntime stacks one of
the two values, it moves the strings and thereby clears the other value. A Where with two equal operands copies the strings
instead:

    body (i, c, s) => (c, s', y)      ->      body (i, c, s) => (c, s', y')  with  y' = Where(true, y, y)

Works around ORT-SCAN-SHARED-OUTPUT, ORT-LOOP-STEP-NUMBER and ORT-LOOP-NO-STEPS-SIZES.
"""

from collections.abc import Iterator

import onnx
import onnx_ir as ir

from ortscan.base.proto_graphs import all_graphs
from ortscan.modelio.slots import ir_with_own_tensors
from ortscan.running.graph_index import all_nodes
from rewrites.analysis.shapes.inference import infer_model

__all__ = ["sound_oracle", "unsound_loops", "with_declared_sizes"]


def unsound_loops(proto: onnx.ModelProto) -> list[str]:
    """Return a sentence for each Scan or Loop that onnxruntime computes wrongly.

    The sentence names the outputs of the body that cause the error.
    """
    descriptions = []
    for node, body in _loops(proto):
        positions = _unsound_outputs(node, body)
        if positions:
            names = ", ".join(f"'{body.output[i].name}'" for i in positions)
            label = f"{node.op_type} '{node.name or node.output[0]}'"
            descriptions.append(f"{label} returns {names} without a separate node in its body")
    return descriptions


def sound_oracle(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of ``proto`` with the repairs of this module, or ``proto`` if it needs no repair."""
    if not unsound_loops(proto):
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    names = {name for node, _ in all_nodes(copy) for name in (*node.input, *node.output)}
    for graph in all_graphs(copy):
        names.update(value.name for value in (*graph.input, *graph.output, *graph.initializer))
    for node, body in _loops(copy):
        for position in _unsound_outputs(node, body):
            output = body.output[position]
            name = f"{output.name}_own"
            while name in names:
                name += "_"
            names.add(name)
            if node.op_type == "Loop" and position > 0 and output.name != body.input[0].name:
                yes = onnx.helper.make_tensor("yes", onnx.TensorProto.BOOL, [], [True])
                body.node.append(onnx.helper.make_node("Constant", [], [f"{name}_yes"], value=yes))
                body.node.append(onnx.helper.make_node("Where", [f"{name}_yes", output.name, output.name], [name]))
                names.add(f"{name}_yes")
            else:
                body.node.append(onnx.helper.make_node("Identity", [output.name], [name]))
            output.name = name
    return copy


def with_declared_sizes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with declared shapes for all values whose sizes can be inferred.

    This matters if a Loop runs zero steps. The stacked outputs are then empty: their axis 0 has size 0. If onnxruntime cannot get
    the size of another axis from the body, it uses size 0 for this axis too. For example, a mean over the steps then has no
    elements, although it should have one element for each feature.
    """
    model = ir_with_own_tensors(proto)
    infer_model(model)
    return ir.to_proto(model)


def _loops(proto: onnx.ModelProto) -> Iterator[tuple[onnx.NodeProto, onnx.GraphProto]]:
    for node, _ in all_nodes(proto):
        if node.op_type in ("Scan", "Loop") and node.domain in ("", "ai.onnx"):
            yield from ((node, attribute.g) for attribute in node.attribute if attribute.name == "body")


def _unsound_outputs(node: onnx.NodeProto, body: onnx.GraphProto) -> list[int]:
    names = [output.name for output in body.output]
    if node.op_type == "Scan":
        inputs = {value.name for value in body.input}
        return [position for position, name in enumerate(names) if name in inputs or name in names[:position]]
    step = body.input[0].name if body.input else None
    producers = {name: inner for inner in body.node for name in inner.output}
    copied = {name for inner in body.node if inner.op_type == "Identity" for name in inner.input}

    def is_moved_string(position: int) -> bool:
        output = body.output[position]
        stacked = position >= max(1, len(node.input) - 1)
        if not stacked or output.type.tensor_type.elem_type != onnx.TensorProto.STRING:
            return False
        producer = producers.get(output.name)
        return producer is None or producer.op_type == "Identity" or output.name in copied or names.count(output.name) > 1

    return [position for position, name in enumerate(names) if name == step or is_moved_string(position)]
