"""Find nodes by the names of values: the producer of a value, its users, and what it depends on."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import onnx

from ortscan.base.proto_graphs import bodies_of, default_opset
from ortscan.ort.installed import newest_opset

__all__ = ["GraphIndex", "Slice", "all_nodes", "names_read"]


@dataclass(frozen=True)
class Slice:
    """The nodes that compute some values.

    Attributes:
        nodes: the positions of these nodes in the graph.
        leaves: the names of the values that the computation starts from: inputs of the model, and values at which the search had
            to stop.
    """

    nodes: set[int]
    leaves: set[str]


class GraphIndex:
    """An index of the nodes of ``graph``, or of ``nodes`` if they are passed.

    The position of a node is its number among these nodes. A node counts as a reader of all values that its nested graphs read.
    """

    def __init__(self, graph: onnx.GraphProto, nodes: Iterable[onnx.NodeProto] | None = None):
        self.nodes = graph.node if nodes is None else list(nodes)
        self.initializers = {tensor.name: tensor for tensor in graph.initializer}
        self.inputs = {value.name for value in graph.input} - set(self.initializers)
        self.producers = {name: position for position, node in enumerate(self.nodes) for name in node.output if name}
        self._users: dict[str, int | list[int]] = {}
        for position, node in enumerate(self.nodes):
            for name in names_read(node):
                before = self._users.setdefault(name, position)
                if isinstance(before, list):
                    before.append(position)
                elif before != position:
                    self._users[name] = [before, position]
        self._reads: dict[int, list[str]] = {}

    def reads(self, position: int) -> list[str]:
        """Return the names that the node at ``position`` reads."""
        if position not in self._reads:
            self._reads[position] = names_read(self.nodes[position])
        return self._reads[position]

    def users(self, name: str) -> Sequence[int]:
        """Return the positions of the nodes that read ``name``."""
        users = self._users.get(name, [])
        return [users] if isinstance(users, int) else users

    def backward(self, names: Iterable[str], stops: set[str], max_nodes: int) -> Slice | str:
        """Return the nodes that compute ``names`` from inputs of the model and from ``stops``.

        The search starts at ``names``, goes backward, and stops at inputs and at ``stops``. It never stops at one of ``names``,
        even if ``stops`` contains it. If a value has no producer, or if more than ``max_nodes`` nodes are needed, return a text
        with this reason instead.
        """
        nodes: set[int] = set()
        leaves: set[str] = set()
        wanted = set(names)
        pending = list(wanted)
        while pending:
            name = pending.pop()
            if name in self.initializers:
                continue
            if name in self.inputs or (name in stops and name not in wanted):
                leaves.add(name)
            elif name not in self.producers:
                return f"has no '{name}'"
            elif (position := self.producers[name]) not in nodes:
                nodes.add(position)
                if len(nodes) > max_nodes:
                    return f"needs more than {max_nodes} nodes for it"
                pending += self.reads(position)
        return Slice(nodes, leaves)

    def forward(self, names: Iterable[str]) -> set[str]:
        """Return the values ``names``, and all values that are computed from them."""
        reached: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name not in reached:
                reached.add(name)
                pending += [output for user in self.users(name) for output in self.nodes[user].output if output]
        return reached


def names_read(node: onnx.NodeProto) -> list[str]:
    """Return the names of the values that ``node`` or its nested graphs read, without repetitions.

    Names that are defined inside a nested graph are not included.
    """
    names = dict.fromkeys(name for name in node.input if name)
    if not node.attribute:
        return list(names)
    for body in bodies_of(node):
        names.update(dict.fromkeys(_free_names(body)))
    return list(names)


def _free_names(body: onnx.GraphProto) -> list[str]:
    own = {value.name for value in body.input} | {tensor.name for tensor in body.initializer}
    own.update(name for node in body.node for name in node.output)
    read = [name for node in body.node for name in names_read(node)] + [value.name for value in body.output]
    return [name for name in read if name not in own]


def all_nodes(proto: onnx.ModelProto) -> Iterator[tuple[onnx.NodeProto, int]]:
    """Yield every node of a model, and the version of the default operator set that applies to it.

    This includes nodes in bodies and functions. If a model imports operator sets, but not the default one, the newest version of
    the default one applies, as in onnxruntime.
    """
    version = default_opset(proto.opset_import)
    if version is None:
        version = newest_opset() if proto.opset_import else 1
    yield from ((node, version) for node in _nodes(proto.graph.node))
    for function in proto.functions:
        version = default_opset(function.opset_import) or version
        yield from ((node, version) for node in _nodes(function.node))


def _nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        if node.attribute:
            for body in bodies_of(node):
                yield from _nodes(body.node)
