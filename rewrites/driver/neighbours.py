"""Which loops of a model have anything to do with each other: those that values connect, by way of whatever other nodes."""

import onnx_ir as ir

from rewrites.analysis.dependence import reads
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import is_loop

__all__ = ["Neighbours"]


class Neighbours:
    """Loops in groups: what is done to a loop may matter to those of its group alone.

    A group is a connected component of the main graph's nodes, joined by all values but initializers; what is nested in a node is
    of the node's group.
    """

    def __init__(self, graph: ir.Graph) -> None:
        self._leader: dict[object, object] = {}
        self._around: dict[ir.Node, ir.Node] = {}
        for node in graph:
            for value in (*reads(node), *node.outputs):
                if value.const_value is None or value.is_graph_input():
                    self._join(node, value)
            inner = [one for nested in node_graphs(node) for one in all_nodes(nested)]
            self._around.update((loop, node) for loop in (node, *inner) if is_loop(loop))

    def group_of(self, loop: ir.Node) -> object:
        """Return what stands for the group of a loop, which was there when the groups were made."""
        return self._find(self._around[loop])

    def _find(self, one: object) -> object:
        root = one
        while (above := self._leader.setdefault(root, root)) is not root:
            root = above
        while one is not root:
            self._leader[one], one = root, self._leader[one]
        return root

    def _join(self, one: object, other: object) -> None:
        self._leader[self._find(one)] = self._find(other)
