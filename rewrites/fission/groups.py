"""What the nodes that could leave at the end of a loop are made from, each node's answer made of those of the nodes before it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.cut.step_costs import few_rows, staying_ns
from rewrites.fission.before import Before
from rewrites.fission.measured_sets import MeasuredSet, MeasuredSets

__all__ = ["Groups", "NodeGroup"]


@dataclass(frozen=True)
class NodeGroup:
    """Of a node with all of the chosen nodes that it is made from: what it reads of the recurrence, and what it surely gives.

    ``copies``: nothing but copies. ``few_rows``: one of them multiplies few rows by weights. ``least_ns``: what it costs in each
    step to have them in the loop, at least.
    """

    crossing: MeasuredSet
    given: MeasuredSet
    copies: bool
    few_rows: bool
    least_ns: int


class Groups:
    """``chosen``: the nodes that leave so far. ``reading``: the bytes of a step's value that the recurrence would have to give."""

    def __init__(self, nodes: Iterable[ir.Node], before: Before, sizes: StepSizes, reading: Callable[[ir.Value], int]) -> None:
        self.chosen = set(nodes)
        self._before, self._sizes = before, sizes
        self._reads, self._gives = MeasuredSets(reading), MeasuredSets(sizes.step)
        self._known: dict[ir.Node, NodeGroup] = {}

    def of(self, node: ir.Node) -> NodeGroup:
        """Return the answer for ``node``."""
        waiting = [node]
        while waiting:
            unknown = [maker for maker in self._makers(waiting[-1]) if maker not in self._known]
            waiting.extend(unknown)
            if not unknown:
                one = waiting.pop()
                self._known[one] = self._known.get(one) or self._made(one)
        return self._known[node]

    def least_given(self, node: ir.Node) -> int:
        """Return a number of bytes that ``node`` with what it is made from gives at least."""
        own = self._gives.of(value for value in node.outputs if value.is_graph_output() or value.uses())
        return self._gives.union([own, self.of(node).given]).size

    def all_makers(self, node: ir.Node) -> set[ir.Node]:
        """Return ``node`` and the chosen nodes that it is made from."""
        group, waiting = {node}, [node]
        while waiting:
            new = [maker for maker in self._makers(waiting.pop()) if maker not in group]
            group.update(new)
            waiting.extend(new)
        return group

    def keep(self, group: set[ir.Node]) -> None:
        """Take ``group`` out of the chosen nodes."""
        self.chosen -= group
        waiting = list(group)
        while waiting:
            node = waiting.pop()
            if self._known.pop(node, None) is not None:
                waiting.extend(user for value in node.outputs for user, _ in value.uses())

    def _made(self, node: ir.Node) -> NodeGroup:
        makers = [self._known[maker] for maker in self._makers(node)]
        entering = (value for value in node.inputs if value is not None and value.producer() not in self.chosen)
        crossing = self._reads.of(value for value in entering if not self._before.stacks.has(value))
        given = self._gives.of(value for value in node.outputs if value.is_graph_output() or self._is_read_outside(value))
        return NodeGroup(
            self._reads.union([crossing, *(maker.crossing for maker in makers)]),
            self._gives.union([given, *(maker.given for maker in makers)]),
            node.op_type == "Identity" and all(maker.copies for maker in makers),
            few_rows(node, self._sizes) or any(maker.few_rows for maker in makers),
            staying_ns([node], 0, self._sizes) + max((maker.least_ns for maker in makers), default=0),
        )

    def _makers(self, node: ir.Node) -> dict[ir.Node, None]:
        makers = (value.producer() for value in node.inputs if value is not None)
        return {maker: None for maker in makers if maker is not None and maker in self.chosen}

    def _is_read_outside(self, value: ir.Value) -> bool:
        return any(user not in self.chosen for user, _ in value.uses())
