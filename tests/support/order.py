"""An order of a graph's nodes that depends only on the computation, not on the order or names of nodes in the list."""

from collections.abc import Iterator

from onnx import GraphProto, NodeProto

__all__ = ["bodies_of", "order_nodes"]


def order_nodes(graph: GraphProto) -> None:
    """Sort the nodes of `graph` and of all its bodies in post-order from the outputs. Unused nodes come last."""
    for node in graph.node:
        for body in bodies_of(node):
            order_nodes(body)
    producers = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    order: dict[int, None] = {}
    pending = [producers[o.name] for o in graph.output if o.name in producers] + list(range(len(graph.node)))
    stack = [(position, iter(_reads(graph.node[position]))) for position in reversed(pending)]
    while stack:
        position, names = stack[-1]
        name = None if position in order else next(names, None)
        if name is None:
            order[position] = None
            stack.pop()
        elif name in producers and producers[name] not in order:
            stack.append((producers[name], iter(_reads(graph.node[producers[name]]))))
    nodes = [NodeProto.FromString(graph.node[position].SerializeToString()) for position in order]
    del graph.node[:]
    graph.node.extend(nodes)


def bodies_of(node: NodeProto) -> Iterator[GraphProto]:
    """Return the graphs of `node` by attribute name."""
    for attribute in sorted(node.attribute, key=lambda a: a.name):
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _reads(node: NodeProto) -> Iterator[str]:
    yield from node.input
    for body in bodies_of(node):
        yield from _captures(body)


def _captures(graph: GraphProto) -> Iterator[str]:
    local = {info.name for info in graph.input} | {t.name for t in graph.initializer}
    local |= {name for node in graph.node for name in node.output} | {""}
    names = [name for node in graph.node for name in _reads(node)] + [info.name for info in graph.output]
    yield from (name for name in names if name not in local)
