"""The stacks that exist at the same time stay within the memory budget, and the report tells what they take."""

import pytest

from rewrites.base.report import RewriteReport
from rewrites.graph.context import Options
from tests.rewrites.apply import read, reasons
from tests.rewrites.fission.harness import body_ops, data, loops_of, scan, split

STACK = 5 * 3 * 4
WIDE_BEFORE = scan(
    "a = Exp(x)  b = Sin(x)  c = Cos(x)  d = Add(a, b)  e = Mul(d, c)  g = Add(e, h)  h_next = Tanh(g)", "", states="h"
)
LONG_BEFORE = scan("a = Exp(x)  b = Sin(a)  c = Cos(b)  d = Exp(c)  e = Sin(d)  g = Add(e, h)  h_next = Tanh(g)", "", states="h")
WIDE_AFTER = scan(
    "g = Add(x, h)  h_next = Tanh(g)  a = Exp(h_next)  b = Sin(h_next)  c = Cos(h_next)  d = Add(a, b)  y = Mul(d, c)",
    "y",
    states="h",
)
LONG_AFTER = scan(
    "g = Add(x, h)  h_next = Tanh(g)  a = Exp(h_next)  b = Sin(a)  c = Cos(b)  d = Exp(c)  y = Sin(d)", "y", states="h"
)


def notes(report: RewriteReport) -> list[str]:
    return [note for loop in report.loops for note in loop.notes]


@pytest.mark.parametrize("text", [WIDE_BEFORE, WIDE_AFTER])
def test_stacks_that_exist_at_once_are_counted_together(text: str) -> None:
    free, _ = split(text, options=Options(memory_budget=5 * STACK))
    tight, _ = split(text, options=Options(memory_budget=2 * STACK))
    assert body_ops(free) == ["Add", "Tanh"]
    assert "Cos" in body_ops(tight)


@pytest.mark.parametrize("text", [LONG_BEFORE, LONG_AFTER])
def test_a_stack_nobody_reads_any_more_takes_no_memory(text: str) -> None:
    after, report = split(text, options=Options(memory_budget=2 * STACK))
    assert body_ops(after) == ["Add", "Tanh"]
    assert notes(report) == [f"stacks of about {2 * STACK} bytes at a time"]


def test_what_is_left_says_what_was_held() -> None:
    text = scan("a = Exp(x)  c = Cos(x)  d = Mul(a, c)  e = Mul(d, h)  h_next = Mul(e, a)", "", states="h")
    _, report = split(text, options=Options(memory_budget=STACK))
    detail = report.loops[0].reasons[0].detail
    assert reasons(report) == ["MEMORY-BUDGET"]
    assert f"beside the {STACK} that other stacks take (limit: {STACK})" in detail


NESTED = """main (float[4,3] s0, float[4,8,3] rs, float[5,64] w) => (float[4,8,3] zs) {
    zs = Scan <num_scan_inputs: int = 1, body: graph = outer (float[8,3] r) => (float[8,3] z) {
        k = Exp(r)  q = Sin(k)
        last, z = Scan <num_scan_inputs: int = 1, body: graph = inner (float[3] h, float[3] e) => (float[3] h1, float[3] g) {
            one = Constant <value_ints: ints = [1]> ()  u = Unsqueeze(e, one)  v = Unsqueeze(h, one)
            o = Concat <axis: int = 1> (u, u, u, u, u, u, u, u, u, u, u, u, u, u, u, u)
            p = Mul(o, v)  t = ReduceSum <keepdims: int = 0> (p, one)  h1 = Tanh(t)  g = Identity(h1)
        }> (s, q)
    }> (rs)
}""".replace("(float[4,3] s0", "(float[3] s")


@pytest.mark.parametrize(("budget", "left"), [(1 << 20, False), (2000, True)])
def test_what_a_nested_loop_makes_for_all_steps_counts(budget: int, left: bool) -> None:
    _, report = split(NESTED, options=Options(memory_budget=budget))
    assert (report.loops[1].fate != "removed") == left


def test_a_loop_without_a_recurrence_goes_in_blocks_where_its_stacks_together_are_too_large() -> None:
    text = scan("a = Exp(x)  b = Sin(x)  c = Cos(x)  d = Add(a, b)  y = Mul(d, c)", "y", steps="40")
    whole, _ = split(text)
    assert not loops_of(whole)
    blocked, report = split(text, options=Options(memory_budget=20 * 3 * 3 * 4))
    assert len(loops_of(blocked)) == 1
    assert "steps at a time" in report.loops[0].fired[0].what


def test_what_was_assumed_is_told() -> None:
    text = """main (float[B, 3] h0, float[T, B, 3] xs) => (float[B, 3] h) {
        h = Scan <num_scan_inputs: int = 1, body: graph = body (float[B, 3] h_in, float[B, 3] x) => (float[B, 3] h_out) {
            a = Exp(x)  b = Add(a, h_in)  h_out = Tanh(b)
        }> (h0, xs)
    }"""
    feeds = data(read(text), T=2, B=2)
    taken = 64 * 64 * 3 * 4
    _, report = split(text, feeds=feeds)
    assert notes(report) == [f"stacks of about {taken} bytes at a time, assuming 64 steps and 64 for each unknown size"]
    _, report = split(text, feeds=feeds, options=Options(sizes={"T": 10, "B": 2}))
    assert notes(report) == [f"stacks of about {10 * 2 * 3 * 4} bytes at a time"]
