"""One thing off in a correct model: an input rewired, operands swapped, a constant changed, an intermediate exposed, and so on."""

from collections.abc import Callable

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper, shape_inference

from tests.campaigns.fuzz.edits import graphs_of
from tests.campaigns.fuzz.world import World

__all__ = ["mutate"]

Mutation = Callable[[ModelProto, GraphProto, World], str | None]


def mutate(model: ModelProto, world: World) -> None:
    """Change one thing, mostly in a body."""
    graphs = graphs_of(model)
    bodies = [graph for graph in graphs[1:] if graph.node] or graphs
    for _ in range(3):
        said = world.choose(MUTATIONS)(model, world.choose(bodies), world)
        if said:
            world.feature(f"near miss: {said}")
            return


def _node(graph: GraphProto, world: World, least: int = 1) -> NodeProto | None:
    fitting = [node for node in graph.node if len(node.input) >= least and not any(a.HasField("g") for a in node.attribute)]
    return world.choose(fitting) if fitting else None


def rewired(model: ModelProto, graph: GraphProto, world: World) -> str | None:
    """An operand becomes another value made before it."""
    node = _node(graph, world)
    if node is None:
        return None
    before = [info.name for info in graph.input]
    for other in graph.node:
        if other is node:
            break
        before += list(other.output)
    k = world.between(0, len(node.input) - 1)
    others = [name for name in before if name and name != node.input[k]]
    if not others or not node.input[k]:
        return None
    node.input[k] = world.choose(others)
    return f"input {k} of {node.op_type} rewired"


def swapped(model: ModelProto, graph: GraphProto, world: World) -> str | None:
    fitting = [
        node
        for node in graph.node
        if len(node.input) == 2 and node.op_type in ("Add", "Sub", "Mul", "MatMul", "Concat", "Div", "Less", "Max")
    ]
    if not fitting:
        return None
    node = world.choose(fitting)
    node.input[:] = [node.input[1], node.input[0]]
    return f"operands of {node.op_type} swapped"


def constant_changed(model: ModelProto, graph: GraphProto, world: World) -> str | None:
    fitting = [tensor for tensor in [*graph.initializer, *model.graph.initializer] if tensor.data_type in (1, 6, 7, 10, 11)]
    if not fitting:
        return None
    tensor = world.choose(fitting)
    array = numpy_helper.to_array(tensor).copy()
    if array.size == 0:
        return None
    flat = array.reshape(-1)
    at = world.between(0, array.size - 1)
    with np.errstate(over="ignore"):
        flat[at] = flat[at] + (1 if array.dtype.kind in "iu" else world.choose([0.5, -1, 1]))
    tensor.CopyFrom(numpy_helper.from_array(flat.reshape(array.shape), tensor.name))
    return "constant changed"


def operator_changed(model: ModelProto, graph: GraphProto, world: World) -> str | None:
    rings = [
        ("Add", "Sub", "Mul"),
        ("Tanh", "Sigmoid", "Relu", "Softplus"),
        ("ReduceSum", "ReduceMean"),
        ("ReduceMax", "ReduceMin", "ReduceProd"),
        ("Less", "Greater"),
    ]
    fitting = [node for node in graph.node if any(node.op_type in ring for ring in rings)]
    if not fitting:
        return None
    node = world.choose(fitting)
    ring = next(ring for ring in rings if node.op_type in ring)
    old, node.op_type = node.op_type, world.choose([op for op in ring if op != node.op_type])
    return f"{old} made {node.op_type}"


def exposed(model: ModelProto, graph: GraphProto, world: World) -> str | None:
    """An intermediate of a body becomes one more result of the loop, and of the model."""
    for owner in graphs_of(model):
        for node in owner.node:
            if any((a.name == "body" and a.g is graph) or a.g == graph for a in node.attribute if a.HasField("g")):
                return _expose(model, owner, node, world)
    return None


def _expose(model: ModelProto, owner: GraphProto, loop: NodeProto, world: World) -> str | None:
    body = next((a.g for a in loop.attribute if a.name == "body"), None)
    if body is None or loop.op_type not in ("Scan", "Loop"):
        return None
    used = {info.name for info in body.output}
    fitting = [
        node
        for node in body.node
        if len(node.output) == 1 and node.output[0] not in used and node.op_type not in ("Constant", "SequenceInsert")
    ]
    if not fitting:
        return None
    made = world.choose(fitting).output[0]
    body.output.append(ValueInfoProto(name=made))
    name = world.name("w")
    loop.output.append(name)
    for attribute in loop.attribute:
        if attribute.name in ("scan_output_axes", "scan_output_directions"):
            attribute.ints.append(0)
    if owner is not model.graph:
        return "intermediate exposed, unread"
    inferred = shape_inference.infer_shapes(model).graph.value_info
    known = next((info for info in inferred if info.name == name and info.type.tensor_type.HasField("shape")), None)
    if known is None:
        return "intermediate exposed, unread"
    public = world.name("y")
    model.graph.node.append(helper.make_node("Identity", [name], [public]))
    model.graph.output.append(helper.make_value_info(public, known.type))
    return "intermediate exposed"


def activated(model: ModelProto, graph: GraphProto, world: World) -> str | None:
    """A node more between a value and who reads it."""
    node = _node(graph, world)
    if node is None:
        return None
    k = world.between(0, len(node.input) - 1)
    if not node.input[k]:
        return None
    made = world.name("m")
    more = helper.make_node(world.choose(["Identity", "Identity", "Tanh", "Neg", "Abs"]), [node.input[k]], [made])
    at = next(n for n, other in enumerate(graph.node) if other is node or other == node)
    nodes = list(graph.node)
    nodes[at].input[k] = made
    rest = [NodeProto.FromString(other.SerializeToString()) for other in nodes]
    del graph.node[:]
    graph.node.extend([*rest[:at], more, *rest[at:]])
    return f"{more.op_type} put before {node.op_type}"


def state_delayed(model: ModelProto, graph: GraphProto, world: World) -> str | None:
    """Two outputs of a body change places, of states or results alike."""
    if len(graph.output) < 2:
        return None
    a, b = world.dice.sample(range(len(graph.output)), 2)
    first, second = graph.output[a].name, graph.output[b].name
    graph.output[a].name, graph.output[b].name = second, first
    return "body outputs changed places"


MUTATIONS: tuple[Mutation, ...] = (
    rewired,
    rewired,
    rewired,
    swapped,
    constant_changed,
    constant_changed,
    operator_changed,
    operator_changed,
    exposed,
    exposed,
    activated,
    activated,
    state_delayed,
)
