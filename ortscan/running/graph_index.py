"""A graph by its names: who makes a value, who reads it, and what a value is made from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import onnx

from ortscan.base.proto_graphs import bodies_of

__all__ = ["GraphIndex", "Slice", "names_read"]


@dataclass(frozen=True)
class Slice:
    """Nodes by position, and the values they start from: those that were to stop at, and inputs of the model."""

    nodes: set[int]
    leaves: set[str]


class GraphIndex:
    """The main graph of a model, or other ``nodes`` on its inputs and initializers.

    The values that bodies read from outside count as read by the node that holds them.
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
        """Return what the node at ``position`` reads."""
        if position not in self._reads:
            self._reads[position] = names_read(self.nodes[position])
        return self._reads[position]

    def users(self, name: str) -> Sequence[int]:
        """Return who reads ``name``, by position."""
        found = self._users.get(name, [])
        return [found] if isinstance(found, int) else found

    def backward(self, names: Iterable[str], stops: set[str], most_nodes: int) -> Slice | str:
        """Return what computes ``names`` from ``stops`` and inputs; ``names`` are computed even where they are to stop at."""
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
                if len(nodes) > most_nodes:
                    return f"needs more than {most_nodes} nodes for it"
                pending += self.reads(position)
        return Slice(nodes, leaves)

    def forward(self, names: Iterable[str]) -> set[str]:
        """Return all values made of ``names``, these included."""
        found: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                pending += [each for user in self.users(name) for each in self.nodes[user].output if each]
        return found


def names_read(node: onnx.NodeProto) -> list[str]:
    """Return the names that ``node`` reads, each once; those that its graphs read from outside too."""
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
