"""Parts of a model as model-local functions: a loop, or a few nodes of a body."""

from onnx import FunctionProto, GraphProto, NodeProto, helper

from tests.campaigns.fuzz.case import Case
from tests.campaigns.fuzz.edits import graphs_of
from tests.campaigns.fuzz.world import World

__all__ = ["outline"]


def outline(case: Case, world: World) -> None:
    """Put a run of neighbouring nodes into a function, and call it where they were."""
    model = case.model
    if model.ir_version < 8:
        return
    graphs = [graph for graph in graphs_of(model) if graph.node]
    for _ in range(world.choose([1, 1, 2])):
        graph = world.choose(graphs[:1] * 2 + graphs)
        first = world.between(0, len(graph.node) - 1)
        _outline(case, world, graph, first, min(first + world.choose([1, 2, 4, 30]), len(graph.node)))


def _outline(case: Case, world: World, graph: GraphProto, first: int, last: int) -> None:
    model = case.model
    nodes = [NodeProto.FromString(node.SerializeToString()) for node in graph.node[first:last]]
    made = [name for node in nodes for name in node.output if name]
    read = list(dict.fromkeys(name for node in nodes for name in _read(node) if name not in made))
    rest = [*graph.node[:first], *graph.node[last:]]
    wanted = {name for node in rest for name in _read(node)} | {info.name for info in graph.output}
    given = [name for name in made if name in wanted]
    if not given or any(node.domain == "fuzz" for node in nodes):
        return
    name = f"part{len(model.functions)}"
    function = FunctionProto(name=name, domain="fuzz", input=read, output=given, node=nodes)
    function.opset_import.extend(o for o in model.opset_import if o.domain != "fuzz")
    model.functions.append(function)
    if all(o.domain != "fuzz" for o in model.opset_import):
        model.opset_import.append(helper.make_opsetid("fuzz", 1))
    call = helper.make_node(name, read, given, domain="fuzz")
    kept = [NodeProto.FromString(node.SerializeToString()) for node in rest]
    del graph.node[:]
    graph.node.extend([*kept[:first], call, *kept[first:]])
    world.feature("function")


def _read(node: NodeProto) -> list[str]:
    """What a node reads, its bodies' captures among them."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        if attribute.HasField("g"):
            body = attribute.g
            own = {info.name for info in body.input} | {tensor.name for tensor in body.initializer}
            own |= {name for inner in body.node for name in inner.output}
            inside = [name for inner in body.node for name in _read(inner)] + [info.name for info in body.output]
            names += [name for name in inside if name not in own]
    return names
