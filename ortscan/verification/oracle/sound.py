"""Repairing a model that onnxruntime computes wrongly, so that it can serve as the oracle.

A Scan whose body returns a value twice, or returns one of its own inputs, is legal; onnxruntime gives uninitialised memory
for it. Of a Loop whose body returns its step number it gives the last one for all steps. One Identity per such output cures it:

    body (s, x) => (s, n, n)      ->      body (s, x) => (s', n, n')   with  s' = Identity(s),  n' = Identity(n)
    body (i, c, s) => (c, s, i)   ->      body (i, c, s) => (c, s, i') with  i' = Identity(i)

Of strings that a Loop stacks, and that are an Identity of another value or are returned elsewhere too, onnxruntime robs that
value; a Where that chooses them either way makes new ones:

    body (i, c, s) => (c, s', y)      ->      body (i, c, s) => (c, s', y')  with  y' = Where(true, y, y)

Nothing else is touched: what else a Loop returns it returns rightly.

Works round ORT-SCAN-SHARED-OUTPUT and ORT-LOOP-STEP-NUMBER.
"""

from collections.abc import Iterator

import onnx

from ortscan.base.proto_graphs import all_graphs
from ortscan.running.graph_index import all_nodes

__all__ = ["sound_oracle", "unsound_loops"]


def unsound_loops(proto: onnx.ModelProto) -> list[str]:
    """One description per Scan or Loop that onnxruntime computes wrongly."""
    found = []
    for node, body in _loops(proto):
        positions = _unsound_outputs(node, body)
        if positions:
            names = ", ".join(f"'{body.output[i].name}'" for i in positions)
            found.append(f"{node.op_type} '{node.name or node.output[0]}' returns {names} without a node of its own in its body")
    return found


def sound_oracle(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of ``proto`` in which every such output has a node of its own; ``proto`` itself where that is so already."""
    if not unsound_loops(proto):
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    taken = _names(copy)
    for node, body in _loops(copy):
        for position in _unsound_outputs(node, body):
            output = body.output[position]
            name = f"{output.name}_own"
            while name in taken:
                name += "_"
            taken.add(name)
            if node.op_type == "Loop" and position > 0 and output.name != body.input[0].name:
                yes = onnx.helper.make_tensor("yes", onnx.TensorProto.BOOL, [], [True])
                body.node.append(onnx.helper.make_node("Constant", [], [f"{name}_yes"], value=yes))
                body.node.append(onnx.helper.make_node("Where", [f"{name}_yes", output.name, output.name], [name]))
                taken.add(f"{name}_yes")
            else:
                body.node.append(onnx.helper.make_node("Identity", [output.name], [name]))
            output.name = name
    return copy


def _loops(proto: onnx.ModelProto) -> Iterator[tuple[onnx.NodeProto, onnx.GraphProto]]:
    for node, _ in all_nodes(proto):
        if node.op_type in ("Scan", "Loop") and node.domain in ("", "ai.onnx"):
            yield from ((node, attribute.g) for attribute in node.attribute if attribute.name == "body")


def _unsound_outputs(node: onnx.NodeProto, body: onnx.GraphProto) -> list[int]:
    if node.op_type == "Loop":
        step = body.input[0].name if body.input else None
        robbing = _robbing_outputs(node, body)
        return [position for position, output in enumerate(body.output) if output.name == step or position in robbing]
    inputs = {value.name for value in body.input}
    seen: set[str] = set()
    positions = []
    for position, output in enumerate(body.output):
        if output.name in inputs or output.name in seen:
            positions.append(position)
        seen.add(output.name)
    return positions


def _robbing_outputs(node: onnx.NodeProto, body: onnx.GraphProto) -> set[int]:
    """The positions of stacked strings that are another value's."""
    makers = {name: one for one in body.node for name in one.output}
    copied = {name for one in body.node if one.op_type == "Identity" for name in one.input}
    returned = [output.name for output in body.output]
    found = set[int]()
    for position in range(max(1, len(node.input) - 1), len(body.output)):
        output = body.output[position]
        if output.type.tensor_type.elem_type == onnx.TensorProto.STRING:
            maker = makers.get(output.name)
            if maker is None or maker.op_type == "Identity" or output.name in copied or returned.count(output.name) > 1:
                found.add(position)
    return found


def _names(proto: onnx.ModelProto) -> set[str]:
    names = {name for node, _ in all_nodes(proto) for name in (*node.input, *node.output)}
    for graph in all_graphs(proto):
        names.update(value.name for value in (*graph.input, *graph.output, *graph.initializer))
    return names
