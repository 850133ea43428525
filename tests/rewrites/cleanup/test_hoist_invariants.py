import numpy as np
import pytest

from rewrites.cleanup import hoist_invariants
from rewrites.registry import RULES
from tests.rewrites.apply import apply, read
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import becomes, loop, scan, stays

GIVEN = {"given": "float[2] s, float[3,2] xs, float[2] w"}


@pytest.mark.parametrize("opset", [9, 13, 18, 25])
def test_work_that_is_the_same_in_every_step_moves_before_the_loop(opset: int) -> None:
    becomes(
        hoist_invariants,
        scan("a = Exp (w) b = Neg (a) h1 = Add (h, b) y = Mul (x, a)", **GIVEN),
        scan("h1 = Add (h, b) y = Mul (x, a)", **GIVEN, before="a = Exp (w) b = Neg (a)"),
        opset=opset,
    )


def test_an_output_that_is_the_same_in_every_step_is_copied_in_each() -> None:
    becomes(
        hoist_invariants,
        scan("h1 = Add (h, x) y = Exp (w)", **GIVEN),
        scan("h1 = Add (h, x) y = Identity (e)", **GIVEN, before="e = Exp (w)"),
    )
    stays(hoist_invariants, scan("h1 = Add (h, x) y = Identity (w)", **GIVEN))


def test_what_reads_a_copy_that_stays_does_not_leave_before_it() -> None:
    text = scan("y = Identity (w) h1 = Tanh (y)", **GIVEN)
    stays(hoist_invariants, text)
    after, _ = apply(text, RULES, feeds=data(read(text)))
    assert "Scan" not in [node.op_type for node in after.graph.node]


def test_what_an_inner_loop_copies_of_an_outer_one_stays_readable() -> None:
    inner = "p, q = Scan <num_scan_inputs = 1, body = d (float[2] e) => (float[2] k, float[2] u) { k = Identity (x) u = Tanh (k) }> (xs)"
    text = scan(
        inner,
        inputs="float[2] x",
        outputs="float[3,2] p, float[3,2] q",
        operands="xs",
        outer="a, b",
        results="float[3,3,2] a, float[3,3,2] b",
    )
    apply(text, RULES, feeds=data(read(text)))


def test_random_numbers_are_drawn_in_every_step() -> None:
    stays(hoist_invariants, scan("a = RandomUniformLike (w) h1 = Add (h, a) y = Neg (x)", **GIVEN))
    inner = "then_branch = p () => (float[2] u) { u = RandomUniformLike (w) }, else_branch = q () => (float[2] v) { v = Abs (w) }"
    stays(
        hoist_invariants,
        scan(f"a = If (t) <{inner}> h1 = Add (h, a) y = Neg (x)", given="float[2] s, float[3,2] xs, float[2] w, bool t"),
    )


def test_a_branch_that_reads_the_step_stays() -> None:
    inner = "then_branch = p () => (float[2] u) {{ u = Neg ({}) }}, else_branch = q () => (float[2] v) {{ v = Abs (w) }}"
    given = {"given": "float[2] s, float[3,2] xs, float[2] w, bool t"}
    stays(hoist_invariants, scan(f"a = If (t) <{inner.format('x')}> h1 = Add (h, a) y = Neg (x)", **given))
    becomes(
        hoist_invariants,
        scan(f"a = If (t) <{inner.format('w')}> h1 = Add (h, a) y = Neg (x)", **given),
        scan("h1 = Add (h, a) y = Neg (x)", **given, before=f"a = If (t) <{inner.format('w')}>"),
    )


def test_a_whole_loop_moves_out_of_a_loop() -> None:
    inner = "a = Scan <num_scan_inputs = 1, body = d (float[2] g, float[2] e) => (float[2] g1) { g1 = Add (g, e) }> (w, xs)"
    becomes(
        hoist_invariants,
        scan(f"{inner} h1 = Add (h, a) y = Neg (x)", **GIVEN),
        scan("h1 = Add (h, a) y = Neg (x)", **GIVEN, before=inner),
    )


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_loop_that_may_not_run_gives_up_only_what_cannot_fail(steps: int) -> None:
    inside = "a = Exp (w) g = Gather (xs, k) h1 = Add (h, a) y = Add (g, a)"
    given = {"given": "float[2] s, float[3,2] xs, float[2] w, int64 k", "steps": None}
    text = loop(inside, **given)
    after, _ = becomes(hoist_invariants, text, feeds={"m": np.array(steps), "k": np.array(1)})
    assert [node.op_type for node in after.graph.node] == ["Exp", "Loop"]


def test_what_would_fail_does_not_where_the_loop_does_not_run() -> None:
    text = loop(
        "a = Exp (w) g = Gather (xs, k) h1 = Add (h, a) y = Add (g, a)",
        given="float[2] s, float[3,2] xs, float[2] w, int64 k",
        steps=None,
    )
    becomes(hoist_invariants, text, feeds={"m": np.array(0), "k": np.array(7)})


def test_a_loop_that_surely_runs_gives_up_all() -> None:
    after, _ = becomes(hoist_invariants, loop("g = Gather (xs, k) h1 = Add (h, g) y = Neg (h)", weights="int64 k = {1}"))
    assert [node.op_type for node in after.graph.node] == ["Gather", "Loop"]


def test_an_opset_8_scan_of_no_rows_may_not_run_either() -> None:
    text = scan(
        "a = Exp (w) b = MatMul (w, w) h1 = Add (h, a) y = Add (x, b)",
        given="float[B,2] s, float[B,T,2] xs, float[2] w",
        operands=", s, xs",
        results="float[B,2] z, float[B,T,2] ys",
    )
    after, _ = becomes(hoist_invariants, text, opset=8)
    assert [node.op_type for node in after.graph.node] == ["Exp", "Scan"]


def test_a_name_used_outside_too_stays_unique() -> None:
    text = scan(
        "a = Exp (w) h1 = Add (h, a) y = Neg (x)",
        **GIVEN | {"results": "float[2] z, float[3,2] ys, float[2] a"},
        after="a = Neg (z)",
    )
    after, _ = becomes(hoist_invariants, text, check=False)
    assert [info.name for info in after.graph.output] == ["z", "ys", "a"]


SEQUENCE = """<ir_version: 8, opset_import: ["": {opset}]>
    g (seq(float[2]) q0, float[2] s) => (seq(float[2]) q, float[2] z) <int64 m = {{2}}> {{
        q, z = Loop <body = b (int64 i, bool c, seq(float[2]) a, float[2] h) => (bool c1, seq(float[2]) a1, float[2] h1) {{
            c1 = Identity (c)  e = SequenceAt (a, i)  a1 = SequenceConstruct (s, s)  h1 = Add (h, e)
        }}> (m, , q0, s) }}"""
FEEDS = {"q0": [np.ones(2, np.float32), np.zeros(2, np.float32)], "s": np.ones(2, np.float32)}


def test_a_sequence_returned_in_each_step_stays_where_no_identity_copies_it() -> None:
    stays(hoist_invariants, SEQUENCE.format(opset=13), check=False)
    apply(SEQUENCE.format(opset=13), RULES, feeds=FEEDS, check=False)
    becomes(hoist_invariants, SEQUENCE.format(opset=14), feeds=FEEDS, check=False)


def test_an_input_that_is_left_out_stays_left_out() -> None:
    weights = {"weights": "float one = {1}", **GIVEN}
    becomes(
        hoist_invariants,
        scan("a = Clip (w, , one) h1 = Add (h, a) y = Neg (x)", **weights),
        scan("h1 = Add (h, a) y = Neg (x)", before="a = Clip (w, , one)", **weights),
    )
