"""Replaces values, and moves or removes nodes. The names, types and shapes of graph outputs stay.

Works around ORT-BODY-WEIGHTS-BY-NAME.
"""

from collections.abc import Iterable, Sequence

import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.names import Names
from rewrites.graph.values import is_constant
from rewrites.graph.walk import all_nodes, inner_graphs, node_graphs

__all__ = [
    "can_copy",
    "dequantize_outside",
    "is_stored_in_main",
    "lift_initializers",
    "lower_initializers",
    "move_before",
    "remove_nodes",
    "replace_output",
    "replace_value",
    "take_out",
    "take_over",
]


def can_copy(value: ir.Value, opset: int) -> bool:
    """Return True if an Identity can copy ``value`` in ``opset``.

    Sequences and optionals need a newer opset than tensors.
    """
    if isinstance(value.type, ir.TensorType):
        return True
    return opset >= (since.IDENTITY_OF_SEQUENCES if isinstance(value.type, ir.SequenceType) else since.IDENTITY_OF_OPTIONALS)


def replace_value(old: ir.Value, new: ir.Value, names: Names) -> None:
    """Replace ``old`` by ``new`` in all nodes and graph outputs.

    A graph output keeps its name, type and shape.
    """
    if old.is_graph_output():
        replace_output(old, new, names)
    for node, index in old.uses():
        node.replace_input_with(index, new)


def replace_output(old: ir.Value, new: ir.Value, names: Names) -> None:
    """Replace the graph output ``old`` by ``new``. The output keeps its name, type and shape.

    ``old`` gets a new name. ``new`` itself becomes the output if a node of the same graph computes ``new`` and ``new`` is no output
    yet. Otherwise, an Identity copies ``new``, and the copy becomes the output. So every output has its own node. If the graph
    returns ``old`` several times, all these outputs are replaced.
    """
    graph = old.graph
    assert isinstance(graph, ir.Graph)
    name, kind, shape = old.name, old.type, old.shape
    old.name = names.fresh(name or "value")
    producer = new.producer()
    direct = producer is not None and producer.graph is graph and not new.is_graph_output()
    stand_in = new if direct else _copy(new, graph, names)
    for index in [index for index, value in enumerate(graph.outputs[:]) if value is old]:
        graph.outputs[index] = stand_in
    stand_in.name = name
    stand_in.type = kind if kind is not None else new.type
    stand_in.shape = shape if shape is not None else new.shape


def take_over(old: ir.Value, new: ir.Value, names: Names) -> None:
    """Replace ``old`` by ``new`` in all nodes and graph outputs.

    ``new`` gets the name, type and shape of ``old``.
    """
    public, old_name, new_name = old.is_graph_output(), old.name, new.name
    new.type = old.type if old.type is not None else new.type
    new.shape = old.shape if old.shape is not None else new.shape
    replace_value(old, new, names)
    if not public:
        old.name, new.name = new_name, old_name


def _copy(value: ir.Value, graph: ir.Graph, names: Names) -> ir.Value:
    node = ir.Node("", "Identity", [value], num_outputs=1, name=names.fresh("node_Identity"))
    node.outputs[0].name = names.fresh(value.name or "value")
    graph.append(node)
    return node.outputs[0]


def move_before(anchor: ir.Node, nodes: Sequence[ir.Node], names: Names) -> None:
    """Move ``nodes`` of one graph, in order, before ``anchor``, which may be in another graph."""
    assert anchor.graph is not None
    take_out(nodes, names)
    anchor.graph.insert_before(anchor, nodes)


def take_out(nodes: Sequence[ir.Node], names: Names) -> None:
    """Remove ``nodes``, which must be nodes of one graph, from this graph.

    Make the names of the nodes and their results unique in the model.
    """
    if nodes and nodes[0].graph is not None:
        nodes[0].graph.remove(nodes)
    for node in nodes:
        node.name = names.unshared(node.name) if node.name else names.fresh(f"node_{node.op_type}")
        for value in node.outputs:
            if value.name:
                value.name = names.unshared(value.name)


def lift_initializers(body: ir.Graph, main: ir.Graph, names: Names, least: int = 0) -> None:
    """Move the initializers of at least ``least`` bytes from ``body`` and its nested graphs to ``main``.

    There are two reasons: onnxruntime can set the initializers of the main graph by name, but not those of a body. And a node that
    is moved out of a body cannot read the initializers of the body.
    """
    for graph in [body, *inner_graphs(body)]:
        for value in list(graph.initializers.values()):
            if value.is_graph_input() or (least and value.const_value is not None and value.const_value.nbytes < least):
                continue
            if value.is_graph_output():
                replace_output(value, value, names)
            del graph.initializers[value.name or ""]
            value.name = names.unshared(value.name)
            if value.const_value is not None:
                value.const_value.name = value.name
            main.register_initializer(value)


def is_stored_in_main(value: ir.Value, main: ir.Graph) -> bool:
    """Return True if ``value`` is an initializer of ``main`` in memory, and no input or output.

    Only such an initializer can move to a nested graph, which cannot refer to a weight in a file.
    """
    if value.const_value is None or isinstance(value.const_value, ir.ExternalTensor):
        return False
    is_own = main.initializers.get(value.name or "") is value
    return is_own and not value.is_graph_input() and not value.is_graph_output()


def lower_initializers(moves: Iterable[tuple[ir.Value, ir.Graph]], main: ir.Graph) -> None:
    """Move initializers of ``main`` to nested graphs.

    ``moves``: pairs of an initializer and the only graph that reads it.
    """
    for value, graph in moves:
        del main.initializers[value.name or ""]
        graph.register_initializer(value)


def dequantize_outside(body: ir.Graph, main: ir.Graph, names: Names) -> None:
    """Move DequantizeLinear nodes of constants from ``body`` and its nested graphs to ``main``.

    onnxruntime refuses the model if the weights of a product are outside the graph of their DequantizeLinear. A DequantizeLinear
    stays if the other operand of the product is also the result of a DequantizeLinear with a constant scale, because onnxruntime
    then multiplies the integers directly.
    """
    for graph in [body, *inner_graphs(body)]:
        for node in [node for node in graph if node.op_type == "DequantizeLinear" and not node.outputs[0].is_graph_output()]:
            makers = [value.producer() for value in node.inputs if value is not None and value.graph is not main]
            constants = [maker for maker in makers if maker is not None and maker.op_type == "Constant" and maker.graph is graph]
            outside = [value for value in node.inputs if value is not None and value.graph is main]
            is_constant = len(constants) == len(makers) and all(value.is_initializer() for value in outside)
            if is_constant and not _meets_quantized_operand(node):
                move_before(main[0], [*constants, node], names)


def _meets_quantized_operand(node: ir.Node) -> bool:
    """Return True if a user of ``node`` also reads a DequantizeLinear with a constant scale."""
    operands = [value for user, _ in node.outputs[0].uses() for value in user.inputs if value is not node.outputs[0]]
    makers = (value.producer() for value in operands if value is not None)
    return any(
        maker is not None and maker.op_type == "DequantizeLinear" and maker.inputs[1] is not None and is_constant(maker.inputs[1])
        for maker in makers
    )


def remove_nodes(nodes: Iterable[ir.Node]) -> None:
    """Remove ``nodes`` from their graphs. No other node may use their results.

    The nodes, and all nodes nested in them, no longer count as users of their inputs.
    """
    doomed = list(nodes)
    by_graph: dict[ir.Graph | ir.Function, list[ir.Node]] = {}
    nested = [inner for node in doomed for graph in node_graphs(node) for inner in all_nodes(graph)]
    for node in (*doomed, *nested):
        node.resize_inputs(0)
        if node.graph is not None:
            by_graph.setdefault(node.graph, []).append(node)
    for graph, gone in by_graph.items():  # each call checks all outputs of the graph
        graph.remove(gone)
