"""Stacks that are too large and only summed up are summed up in the loop."""

import pytest

from rewrites.cleanup import unused_results, unused_scan_inputs
from rewrites.fission import loop_fission, sums_over_time
from rewrites.graph.context import Options
from rewrites.repair import own_outputs
from tests.rewrites.apply import apply, patches, read
from tests.rewrites.fission.harness import data, loops_of, outer_ops
from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

RULES = [own_outputs, unused_results, unused_scan_inputs, sums_over_time, loop_fission]
STEP = 3 * 4


def model(
    reduction: str, *, kind: str = "float", shape: str = "3", body: str = "y = Neg (h1)", more: str = "", steps: str = "50"
) -> str:
    return f"""main ({kind}[3] h0, {kind}[{steps}, 3] xs) => ({kind}[3] hn, {kind}[{shape}] r{more}) {{
        hn, ys = Scan <num_scan_inputs: int = 1, body: graph = body ({kind}[3] h, {kind}[3] x) => ({kind}[3] h1, {kind}[3] y) {{
            a = Abs (x)  h1 = Sub (a, h)  {body}
        }}> (h0, xs)
        z = Constant <value_ints: ints = [0]> ()
        r = {reduction}
    }}"""


def summed(text: str, *, opset: int = 18, fires: bool = True, budget: int = 20 * STEP, **sizes: int):
    before = read(text, opset)
    feeds = data(before, **sizes)
    after, report = apply(before, RULES, feeds=feeds, options=Options(memory_budget=budget))
    assert_same_numbers(ort_run(after, feeds), run_model(before, feeds))
    assert ("sums-over-time" in patches(report)) == fires
    return after


@pytest.mark.parametrize("steps", ["50", "T"])
@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean"])
@pytest.mark.parametrize("kind", ["float", "double"])
def test_floats_are_summed_up(kind, op, keep, steps):
    after = summed(model(f"{op} <keepdims: int = {keep}> (ys, z)", kind=kind, shape="1, 3" if keep else "3", steps=steps), T=50)
    assert len(loops_of(after)[0].output) == 2
    assert op not in outer_ops(after)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_integers_are_compared_in_the_loop(kind, op):
    summed(model(f"{op} <keepdims: int = 0> (ys, z)", kind=kind))


def test_a_reduction_of_an_older_opset_is_read_too():
    text = model("ReduceMean <keepdims: int = 0, axes: ints = [0]> (ys)").replace("z = Constant <value_ints: ints = [0]> ()", "")
    summed(text, opset=13)


REFUSED = {
    "a stack that fits": ("ReduceSum <keepdims: int = 0> (ys, z)", "float", "3", 50 * STEP),
    "the largest of floats": ("ReduceMax <keepdims: int = 0> (ys, z)", "float", "3", 20 * STEP),
    "a sum of integers, which saturates": ("ReduceSum <keepdims: int = 0> (ys, z)", "int32", "3", 20 * STEP),
    "a sum of wide integers, which saturates": ("ReduceSum <keepdims: int = 0> (ys, z)", "int64", "3", 20 * STEP),
    "an average of integers": ("ReduceMean <keepdims: int = 0> (ys, z)", "int32", "3", 20 * STEP),
    "all axes": ("ReduceSum <keepdims: int = 0> (ys)", "float", "", 20 * STEP),
    "the other axis": ("ReduceSum <keepdims: int = 0> (ys, o)", "float", "50", 20 * STEP),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_promised_keeps_its_stack(case):
    reduction, kind, shape, budget = REFUSED[case]
    text = model(reduction, kind=kind, shape=shape).replace("r = ", "o = Constant <value_ints: ints = [1]> ()  r = ")
    text = text.replace("float[] r", "float r")
    summed(text, fires=False, budget=budget)


def test_a_stack_that_something_else_reads_stays():
    text = model("ReduceSum <keepdims: int = 0> (ys, z)  q = Exp (ys)", more=", float[50, 3] q")
    summed(text, fires=False)


def test_stacks_beside_a_stack_that_stays_are_bounded():
    text = model(
        "ReduceMax <keepdims: int = 0> (ys, z)", body="b = Sin (h1)  c = Cos (h1)  d = Mul (b, c)  e = Exp (d)  y = Add (e, b)"
    )
    before = read(text)
    budget = 120 * STEP
    after, report = apply(before, RULES, feeds=data(before), options=Options(memory_budget=budget))
    (note,) = [note for loop in report.loops for note in loop.notes]
    assert int(note.split()[3]) <= budget
    assert loops_of(after)
