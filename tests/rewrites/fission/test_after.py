"""Work that leaves at the end of a loop; its groups agree with a search through all nodes."""

import random

import onnx
import onnx_ir as ir
import pytest

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.cut.step_costs import has_few_rows, saved_ns
from rewrites.fission.after import Groups
from rewrites.fission.before import MovedBefore
from rewrites.fission.liveness import Liveness
from rewrites.fission.stacks import Stacks
from rewrites.graph.context import Context
from rewrites.loops import ScanView
from tests.rewrites.analysis.cut.bodies import random_scan
from tests.rewrites.apply import read, reasons
from tests.rewrites.fission.harness import body_ops, data, loops_of, scan, split


def outputs(model: onnx.ModelProto) -> int:
    (loop,) = loops_of(model)
    return len(loop.output)


@pytest.mark.parametrize(("direction", "count"), [(0, 2), (1, 3)])
def test_a_result_that_the_loop_gives_anyway_is_read_again(direction, count):
    text = scan(
        "b = Add(x, h)  h_next = Tanh(b)  y = Identity(h_next)  z = Softmax(h_next)",
        "y z",
        states="h",
        attributes=f", scan_output_directions: ints = [{direction}, 0]",
    )
    after, _ = split(text)
    assert body_ops(after) == ["Add", "Tanh"]
    assert outputs(after) == count


def test_work_on_the_recurrence_and_on_inputs_leaves():
    text = scan("a = Exp(x)  b = Add(a, h)  h_next = Tanh(b)  c = Mul(h_next, a)  y = Cos(c)  z = Sin(a)", "y z", states="h")
    after, _ = split(text)
    assert body_ops(after) == ["Add", "Tanh"]
    assert outputs(after) == 2


def test_a_states_old_value_is_stacked():
    after, _ = split(scan("b = Add(x, h)  h_next = Tanh(b)  y = Exp(h)", "y", states="h"))
    assert body_ops(after) == ["Add", "Tanh"]


@pytest.mark.parametrize("attributes", ["", ", scan_input_directions: ints = [1]", ", scan_output_directions: ints = [1]"])
def test_a_copy_of_a_states_old_value_stays(attributes):
    after, report = split(scan("b = Add(x, h)  h_next = Tanh(b)  y = Identity(h)", "y", states="h", attributes=attributes))
    assert body_ops(after) == ["Add", "Tanh"]
    assert reasons(report) == ["RECURRENCE"]


def test_many_operators_that_cannot_leave_do_not_hold_back_those_that_can():
    stuck = "  ".join(f"n{i} = RandomUniformLike(h_next)  m{i} = Sub(n{i}, n{i})  y{i} = Add(m{i}, h_next)" for i in range(12))
    text = scan(
        f"b = Add(x, h)  h_next = Tanh(b)  {stuck}  z = Exp(h_next)", " ".join(f"y{i}" for i in range(12)) + " z", states="h"
    )
    after, _ = split(text)
    assert "Exp" not in body_ops(after)


def test_many_refusals_of_the_table_do_not_hold_back_the_rest():
    stuck = "  ".join(
        f"n{i} = NonZero(h_next)  s{i} = Shape(n{i})  f{i} = Cast <to: int = 1> (s{i})  "
        f"g{i} = ReduceMax <keepdims: int = 0> (f{i})  y{i} = Add(g{i}, h_next)"
        for i in range(12)
    )
    text = scan(
        f"b = Add(x, h)  h_next = Tanh(b)  {stuck}  z = Exp(h_next)", " ".join(f"y{i}" for i in range(12)) + " z", states="h"
    )
    after, report = split(text)
    assert "Exp" not in body_ops(after)
    assert reasons(report) == ["DATA-DEPENDENT-SHAPE"]


def test_work_that_sums_up_what_it_reads_stays():
    text = """main (float[9, 9] s0, float[5, 9] xs) => (float[9, 9] last, float[5, 9] ys) {
        last, ys = Scan <num_scan_inputs: int = 1, body: graph = body (float[9, 9] s, float[9] x)
            => (float[9, 9] s_next, float[9] y) {
            a = Exp(x)  s_next = Add(s, a)  p = Mul(s_next, s)  one = Constant <value_ints: ints = [1]> ()
            q = ReduceSum <keepdims: int = 0> (p, one)  y = Cos(q)
        }> (s0, xs)
    }"""
    after, _ = split(text)
    assert body_ops(after) == ["Add", "Mul", "ReduceSum"]


def test_work_on_what_the_loop_gives_anyway_leaves_however_it_sums_up():
    text = """main (float[9, 9] s0, float[5, 9] xs) => (float[9, 9] last, float[5, 9, 9] all, float[5] ys) {
        last, all, ys = Scan <num_scan_inputs: int = 1, body: graph = body (float[9, 9] s, float[9] x)
            => (float[9, 9] s_next, float[9, 9] c, float y) {
            a = Exp(x)  s_next = Add(s, a)  c = Identity(s_next)  y = ReduceSum <keepdims: int = 0> (s_next)
        }> (s0, xs)
    }"""
    after, _ = split(text)
    assert body_ops(after) == ["Add"]


def test_sizes_of_the_body_never_name_sizes_outside():
    text = """main (float[M] h0, float[T, N] xs) => (float[M] h, float[T, M] ys) {
        h, ys = Scan <num_scan_inputs: int = 1, body: graph = body (float[N] h_in, float[N] x) => (float[N] h_out, float[N] y) {
            b = Add(x, h_in)  h_out = Tanh(b)  c = Sin(h_out)  y = Exp(c)
        }> (h0, xs)
    }"""
    after, _ = split(text, feeds=data(read(text)))
    (loop,) = loops_of(after)
    stacks = {info.name: info for info in after.graph.value_info if info.name in loop.output}
    assert all(not dim.dim_param or dim.dim_param == "T" for info in stacks.values() for dim in info.type.tensor_type.shape.dim)


@pytest.mark.parametrize(("width", "stays"), [(3, False), (30000, True)])
def test_two_large_values_are_not_stacked_instead_of_what_is_made_of_them(width, stays):
    text = scan("b = Add(x, h)  h_next = Tanh(b)  g_next = Mul(g, h_next)  c = Sub(g_next, h_next)  y = Exp(c)", "y", states="g h")
    after, _ = split(text.replace("float[5, 3]", f"float[5, {width}]").replace("float[3]", f"float[{width}]"))
    assert ("Sub" in body_ops(after)) == stays


class Slow:
    """The same answers, from nothing but the nodes chosen now."""

    def __init__(self, groups: Groups, before: MovedBefore, sizes: StepSizes) -> None:
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

    def results(self, node: ir.Node) -> set[ir.Value]:
        made = {value for one in self.group(node) for value in one.outputs}
        return {value for value in made if value.is_graph_output() or any(user not in self.chosen for user, _ in value.uses())}

    def path_ns(self, node: ir.Node) -> int:
        return saved_ns([node], 0, self.sizes) + max(map(self.path_ns, self.makers(node)), default=0)


def reading(value: ir.Value) -> int:
    return 3 + 5 * (len(value.name or "") % 3)


def agree(groups: Groups, slow: Slow, node: ir.Node) -> None:
    made, group = groups.group_of(node), slow.group(node)
    crossing, given = slow.crossing(node), slow.results(node)
    assert groups.backward_slice(node) == group
    assert (made.inputs.members.bit_count(), made.inputs.size) == (len(crossing), sum(map(reading, crossing)))
    assert (made.results.members.bit_count(), made.results.size) == (len(given), sum(map(slow.sizes.step_bytes, given)))
    assert made.copies == all(one.op_type == "Identity" for one in group)
    assert made.has_few_rows == any(has_few_rows(one, slow.sizes) for one in group)
    assert made.path_ns == slow.path_ns(node)
    own = {value for value in node.outputs if value.is_graph_output() or value.uses()}
    assert groups.least_result_bytes(node) == sum(map(slow.sizes.step_bytes, given | own))


def parts(loop: ScanView, ctx: Context) -> tuple[MovedBefore, StepSizes]:
    sizes = StepSizes.of(loop, ctx)
    return MovedBefore(Stacks(loop, ctx.builder()), liveness=Liveness(loop, sizes)), sizes


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
                groups.keep_in_loop(groups.backward_slice(rng.choice(left)))
    assert kept > 200
