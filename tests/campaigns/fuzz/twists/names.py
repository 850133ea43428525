"""Names as exporters have them: the same in sibling bodies, with all sorts of characters, long, or numbers."""

from onnx import GraphProto, ModelProto

from tests.campaigns.fuzz.case import Case
from tests.campaigns.fuzz.world import World

__all__ = ["rename"]

NASTY = ["a b", "net/x:0", "ü", "%1", "x.1", "1", "[0]", '"', "\\", "", "scan", "loop", "If", "-", "\t", "{}", "'", "::", "x" * 200]


def rename(case: Case, world: World) -> None:
    """Rename what is in the model; what is fed changes its names with it."""
    kind = world.choose(["siblings", "siblings", "nasty", "public", "nodes"])
    world.feature(f"names: {kind}")
    if kind == "siblings":
        _alike_in_siblings(case.model)
    elif kind == "nodes":
        _name_nodes(case.model.graph, world)
    elif kind == "nasty":
        _rename_all(case.model, {name: f"{world.choose(NASTY)}{k}" for k, name in enumerate(_inner_names(case.model))})
    else:
        mapping = {
            info.name: f"{world.choose(NASTY)}{k}" for k, info in enumerate([*case.model.graph.input, *case.model.graph.output])
        }
        _rename_all(case.model, mapping)
        case.feeds = [{mapping.get(name, name): array for name, array in feeds.items()} for feeds in case.feeds]


def _bodies(graph: GraphProto) -> list[GraphProto]:
    return [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]


def _own(graph: GraphProto) -> list[str]:
    names = [info.name for info in graph.input] + [tensor.name for tensor in graph.initializer]
    return list(dict.fromkeys(names + [name for node in graph.node for name in node.output if name]))


def _alike_in_siblings(model: ModelProto) -> None:
    """Bodies of one graph use the same names: those of the first."""
    bodies = _bodies(model.graph)
    outer = set(_own(model.graph))
    for number, body in enumerate(bodies):
        inner = {name for deeper in _bodies(body) for name in _own(deeper)}
        mapping = {name: f"t{k}" for k, name in enumerate(_own(body)) if name not in inner}
        if not outer & set(mapping.values()):
            _apply(body, mapping)
            body.name = "body" if number else body.name


def _name_nodes(graph: GraphProto, world: World) -> None:
    for k, node in enumerate(graph.node):
        node.name = f"{node.op_type}_{k}" if world.chance(0.6) else ""
    for body in _bodies(graph):
        _name_nodes(body, world)


def _inner_names(model: ModelProto) -> list[str]:
    public = {info.name for info in [*model.graph.input, *model.graph.output]}
    found: list[str] = []

    def visit(graph: GraphProto) -> None:
        found.extend(name for name in _own(graph) if name not in public)
        for body in _bodies(graph):
            visit(body)

    visit(model.graph)
    return list(dict.fromkeys(found))


def _rename_all(model: ModelProto, mapping: dict[str, str]) -> None:
    _apply(model.graph, mapping)


def _apply(graph: GraphProto, mapping: dict[str, str]) -> None:
    for info in [*graph.input, *graph.output, *graph.value_info]:
        info.name = mapping.get(info.name, info.name)
    for tensor in graph.initializer:
        tensor.name = mapping.get(tensor.name, tensor.name)
    for node in graph.node:
        node.input[:] = [mapping.get(name, name) for name in node.input]
        node.output[:] = [mapping.get(name, name) for name in node.output]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _apply(attribute.g, mapping)
