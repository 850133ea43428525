"""Steps that make a model smaller, each tried on a copy."""

from collections.abc import Callable, Iterator
from functools import partial

from onnx import GraphProto, ModelProto, NodeProto

__all__ = ["edits_of", "graphs_of", "pruned"]

Edit = Callable[[ModelProto], None]


def graphs_of(model: ModelProto) -> list[GraphProto]:
    """All graphs of the model, the main one first."""
    found: list[GraphProto] = []

    def visit(graph: GraphProto) -> None:
        found.append(graph)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    visit(attribute.g)

    visit(model.graph)
    for function in model.functions:
        for node in function.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    visit(attribute.g)
    return found


def edits_of(model: ModelProto) -> Iterator[Edit]:
    """What may be tried on a copy of ``model``: large cuts first."""
    graphs = graphs_of(model)
    for k in range(len(model.graph.output)):
        yield partial(_keep_output, k)
    for k in range(len(model.graph.output)):
        yield partial(_drop_output, k)
    for g, graph in enumerate(graphs):
        for n, node in enumerate(graph.node):
            if node.op_type == "If":
                yield partial(_take_branch, g, n, "then_branch")
                yield partial(_take_branch, g, n, "else_branch")
            if node.op_type in ("Scan", "Loop"):
                for k in range(len(node.input)):
                    yield partial(_drop_state, g, n, k)
                for k in range(len(node.output)):
                    yield partial(_drop_stacked, g, n, k)
                yield partial(_drop_scanned, g, n)
    for g, graph in enumerate(graphs):
        for n in range(len(graph.node) - 1, -1, -1):
            for k in range(len(graph.node[n].input)):
                yield partial(_bypass, g, n, k)
    for g in range(len(graphs)):
        yield partial(_forget_types, g)
    for g, graph in enumerate(graphs):
        for n, node in enumerate(graph.node):
            for k in range(len(node.attribute)):
                if not node.attribute[k].HasField("g"):
                    yield partial(_drop_attribute, g, n, k)


def _keep_output(k: int, model: ModelProto) -> None:
    kept = model.graph.output[k]
    if len(model.graph.output) < 3:
        raise ValueError
    del model.graph.output[:]
    model.graph.output.append(kept)


def _drop_output(k: int, model: ModelProto) -> None:
    if len(model.graph.output) == 1:
        raise ValueError
    del model.graph.output[k]


def _take_branch(g: int, n: int, name: str, model: ModelProto) -> None:
    graph = graphs_of(model)[g]
    node = graph.node[n]
    branch = next(a.g for a in node.attribute if a.name == name)
    nodes = [NodeProto.FromString(inner.SerializeToString()) for inner in branch.node]
    graph.initializer.extend(branch.initializer)
    for made, output in zip(branch.output, node.output, strict=False):
        _rename(graph, output, made.name)
    rest = [NodeProto.FromString(other.SerializeToString()) for k, other in enumerate(graph.node) if k != n]
    del graph.node[:]
    graph.node.extend([*rest[:n], *nodes, *rest[n:]])


def _drop_state(g: int, n: int, k: int, model: ModelProto) -> None:
    """A state becomes a capture of what it began with."""
    graph = graphs_of(model)[g]
    node, body = graph.node[n], _body(graph.node[n])
    scanned = _scanned(node)
    first = (2 if node.op_type == "Loop" else 0) + (len(node.input) - len(body.input) if node.op_type == "Scan" else 0)
    state = k - first
    states = len(node.input) - first - scanned
    if not 0 <= state < states:
        raise ValueError
    shift = 2 if node.op_type == "Loop" else 0
    start, given, final = node.input[k], body.input[shift + state].name, node.output[state]
    _rename(body, given, start)
    _rename(graph, final, start)
    del node.input[k], node.output[state], body.input[shift + state], body.output[state + (1 if shift else 0)]


def _drop_stacked(g: int, n: int, k: int, model: ModelProto) -> None:
    graph = graphs_of(model)[g]
    node, body = graph.node[n], _body(graph.node[n])
    extra = 1 if node.op_type == "Loop" else 0
    states = len(body.input) - (2 if extra else _scanned(node))
    name = node.output[k]
    if k < states or name in _used(model) or len(node.output) == 1:
        raise ValueError
    del node.output[k], body.output[k + extra]
    for attribute in node.attribute:
        if attribute.name in ("scan_output_axes", "scan_output_directions"):
            del attribute.ints[k - states]


def _drop_scanned(g: int, n: int, model: ModelProto) -> None:
    """The scanned inputs that the body does not read."""
    graph = graphs_of(model)[g]
    node, body = graph.node[n], _body(graph.node[n])
    scanned, used = _scanned(node), _used(model)
    for k in range(scanned - 1, -1, -1):
        at = len(body.input) - scanned + k
        if scanned > 1 and body.input[at].name not in used:
            del body.input[at], node.input[len(node.input) - scanned + k]
            for attribute in node.attribute:
                if attribute.name in ("scan_input_axes", "scan_input_directions", "directions"):
                    del attribute.ints[k]
                if attribute.name == "num_scan_inputs":
                    attribute.i -= 1
            scanned -= 1


def _bypass(g: int, n: int, k: int, model: ModelProto) -> None:
    """A node's first result is replaced by one of its operands."""
    graph = graphs_of(model)[g]
    node = graph.node[n]
    if not node.input[k]:
        raise ValueError
    kept = node.input[k]
    public = {info.name for info in graph.output}
    if node.output[0] in public:
        if node.op_type == "Identity":
            raise ValueError
        only = NodeProto(op_type="Identity", input=[kept], output=[node.output[0]])
        graph.node[n].CopyFrom(only)
        return
    _rename(graph, node.output[0], kept)
    del graph.node[n]


def _forget_types(g: int, model: ModelProto) -> None:
    graph = graphs_of(model)[g]
    del graph.value_info[:]
    graph.ClearField("doc_string")
    for node in graph.node:
        node.ClearField("doc_string")
        node.ClearField("name")


def _drop_attribute(g: int, n: int, k: int, model: ModelProto) -> None:
    del graphs_of(model)[g].node[n].attribute[k]


def _body(node: NodeProto) -> GraphProto:
    return next(attribute.g for attribute in node.attribute if attribute.name == "body")


def _scanned(node: NodeProto) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == "num_scan_inputs"), 0)


def _rename(graph: GraphProto, old: str, new: str) -> None:
    for node in graph.node:
        node.input[:] = [new if name == old else name for name in node.input]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename(attribute.g, old, new)
    for info in graph.output:
        if info.name == old:
            info.name = new


def _used(model: ModelProto) -> set[str]:
    used: set[str] = set()
    for graph in graphs_of(model):
        used |= {name for node in graph.node for name in node.input} | {info.name for info in graph.output}
    for function in model.functions:
        used |= {name for node in function.node for name in node.input} | set(function.output)
    return used


def pruned(model: ModelProto) -> None:
    """Take out, in place, what no one reads."""
    before = -1
    while before != (before := len(model.SerializeToString())):
        used = _used(model)
        for graph in graphs_of(model):
            for n in range(len(graph.node) - 1, -1, -1):
                if not used & set(graph.node[n].output):
                    del graph.node[n]
            for k in range(len(graph.initializer) - 1, -1, -1):
                if graph.initializer[k].name not in used:
                    del graph.initializer[k]
        for k in range(len(model.graph.input) - 1, -1, -1):
            if model.graph.input[k].name not in used:
                del model.graph.input[k]
