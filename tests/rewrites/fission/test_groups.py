"""What groups of nodes are made from, remembered node by node, against walking through each group anew."""

import random

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.cut.step_costs import few_rows, staying_ns
from rewrites.fission.before import Before
from rewrites.fission.groups import Groups
from rewrites.fission.liveness import Liveness
from rewrites.fission.stacks import Stacks
from rewrites.graph.context import Context
from rewrites.loops import ScanView
from tests.rewrites.analysis.cut.bodies import random_scan


class Slow:
    """The same answers, from nothing but the nodes chosen now."""

    def __init__(self, groups: Groups, before: Before, sizes: StepSizes) -> None:
        self.chosen, self.before, self.sizes = set(groups.chosen), before, sizes

    def makers(self, node: ir.Node) -> set[ir.Node]:
        return {
            maker for value in node.inputs if value is not None and (maker := value.producer()) in self.chosen and maker is not None
        }

    def group(self, node: ir.Node) -> set[ir.Node]:
        return {node}.union(*map(self.group, self.makers(node)))

    def crossing(self, node: ir.Node) -> set[ir.Value]:
        read = {value for one in self.group(node) for value in one.inputs if value is not None}
        return {value for value in read if value.producer() not in self.chosen and not self.before.stacks.has(value)}

    def given(self, node: ir.Node) -> set[ir.Value]:
        made = {value for one in self.group(node) for value in one.outputs}
        return {value for value in made if value.is_graph_output() or any(user not in self.chosen for user, _ in value.uses())}

    def least_ns(self, node: ir.Node) -> int:
        return staying_ns([node], 0, self.sizes) + max(map(self.least_ns, self.makers(node)), default=0)


def reading(value: ir.Value) -> int:
    return 3 + 5 * (len(value.name or "") % 3)


def agree(groups: Groups, slow: Slow, node: ir.Node) -> None:
    made, group = groups.of(node), slow.group(node)
    crossing, given = slow.crossing(node), slow.given(node)
    assert groups.all_makers(node) == group
    assert (made.crossing.members.bit_count(), made.crossing.size) == (len(crossing), sum(map(reading, crossing)))
    assert (made.given.members.bit_count(), made.given.size) == (len(given), sum(map(slow.sizes.step, given)))
    assert made.copies == all(one.op_type == "Identity" for one in group)
    assert made.few_rows == any(few_rows(one, slow.sizes) for one in group)
    assert made.least_ns == slow.least_ns(node)
    own = {value for value in node.outputs if value.is_graph_output() or value.uses()}
    assert groups.least_given(node) == sum(map(slow.sizes.step, given | own))


def parts(loop: ScanView, ctx: Context) -> tuple[Before, StepSizes]:
    sizes = StepSizes.of(loop, ctx)
    return Before(Stacks(loop, ctx.builder()), alive=Liveness(loop, sizes)), sizes


def test_what_is_remembered_of_a_group_is_what_its_nodes_say_also_after_others_stay() -> None:
    kept = 0
    for seed in range(80):
        rng = random.Random(seed)
        loop, ctx = random_scan(seed, nodes=14)
        before, sizes = parts(loop, ctx)
        chosen = [node for node in loop.body if not node.attributes.get("then_branch") and rng.random() < 0.8]
        groups = Groups(chosen, before, sizes, reading)
        for _ in range(6):
            left = [node for node in chosen if node in groups.chosen]
            for node in rng.sample(left, min(len(left), 5)):
                agree(groups, Slow(groups, before, sizes), node)
            if left:
                kept += 1
                groups.keep(groups.all_makers(rng.choice(left)))
    assert kept > 200
