import numpy as np
import pytest

from rewrites.cleanup import dead_code, pass_through_states
from rewrites.registry import RULES
from rewrites.repair import own_outputs
from tests.rewrites.apply import apply
from tests.rewrites.harness import becomes, loop, scan, stays

TWO = {
    "inputs": "float[2] w, float[2] h, float[2] x",
    "outputs": "float[2] w1, float[2] h1, float[2] y",
    "given": "float[2] w0, float[2] s, float[3,2] xs",
    "operands": "w0, s, xs",
    "outer": "wT, z, ys",
    "results": "float[2] wT, float[2] z, float[3,2] ys",
}
INSIDE = "w1 = Identity (w) h1 = Add (h, x) y = Mul (x, w)"


@pytest.mark.parametrize("opset", [9, 13, 18, 25])
def test_a_state_that_no_step_changes_becomes_a_capture(opset: int) -> None:
    becomes(
        [pass_through_states, dead_code],
        scan(INSIDE, **TWO),
        """g (float[2] w0, float[2] s, float[3,2] xs) => (float[2] wT, float[2] z, float[3,2] ys) {
            z, ys = Scan <num_scan_inputs = 1, body = b (h, x) => (h1, y) { h1 = Add (h, x)  y = Mul (x, w0) }> (s, xs)
            wT = Identity (w0) }""",
        opset=opset,
    )


def test_its_final_value_is_its_initial_one_in_branches_too() -> None:
    text = scan(
        INSIDE,
        **TWO
        | {
            "given": "float[2] w0, float[2] s, float[3,2] xs, bool t",
            "results": "float[2] r, float[2] z, float[3,2] ys",
            "after": "r = If (t) <then_branch = p () => (float[2] u) { u = Neg (wT) }, "
            "else_branch = q () => (float[2] v) { v = Add (wT, z) }>",
        },
    )
    becomes(pass_through_states, text, feeds={"t": np.array(True)})
    becomes(pass_through_states, text, feeds={"t": np.array(False)})


def test_a_state_that_changes_stays() -> None:
    stays(pass_through_states, scan("h1 = Add (h, x) y = Neg (h)"))


def test_states_that_change_places_stay() -> None:
    swap = {**TWO, "outputs": "float[2] h1, float[2] w1, float[2] y"}
    stays(pass_through_states, scan("w1 = Identity (w) h1 = Identity (h) y = Mul (x, w)", **swap))


def test_a_state_of_an_opset_8_scan_stays() -> None:
    text = scan(
        "h1 = Identity (h) y = Add (h, x)",
        given="float[B,2] s, float[B,T,2] xs",
        operands=", s, xs",
        results="float[B,2] z, float[B,T,2] ys",
    )
    stays(pass_through_states, text, "SCAN-8-STATE", opset=8)


def test_a_passenger_returned_in_many_places_stays_right() -> None:
    text = scan("", outputs="float[2] h, float[2] h", outer="z, ys")
    becomes([own_outputs, pass_through_states], text, on_ort=False)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_loops_state_too_however_many_steps_there_are(steps: int) -> None:
    text = loop("h1 = Identity (h) y = Gather (xs, i)", steps=None)
    becomes(pass_through_states, text, feeds={"m": np.array(steps)})


SEQUENCE = """<ir_version: 8, opset_import: ["": {opset}]>
    g (int64 m, seq(float[2]) q0, float[2] s) => (seq(float[2]) q, float[2] z) {{
        q, z = Loop <body = b (int64 i, bool c, seq(float[2]) a, float[2] h) => (bool c1, seq(float[2]) a, float[2] h1) {{
            c1 = Identity (c)  e = SequenceAt (a, i)  h1 = Add (h, e)
        }}> (m, , q0, s) }}"""
FEEDS = {"m": np.array(2), "q0": [np.ones(2, np.float32), np.zeros(2, np.float32)], "s": np.ones(2, np.float32)}


def test_a_sequence_that_the_graph_returns_stays_where_no_identity_copies_it() -> None:
    stays(pass_through_states, SEQUENCE.format(opset=13), check=False)
    apply(SEQUENCE.format(opset=13), RULES, feeds=FEEDS, check=False)
    becomes(pass_through_states, SEQUENCE.format(opset=14), feeds=FEEDS, check=False)


def test_a_sequence_read_inside_only_becomes_a_capture_in_every_opset() -> None:
    text = SEQUENCE.format(opset=13).replace("=> (seq(float[2]) q, float[2] z)", "=> (float[2] z)")
    becomes(pass_through_states, text, feeds=FEEDS, check=False)


@pytest.mark.parametrize("opset", [9, 10, 11])
def test_a_loop_keeps_a_state_where_the_operator_needs_one(opset: int) -> None:
    text = loop("h1 = Identity (h) y = Mul (h, h)", results="float[2] z, float[N,2] ys")
    if opset < 11:
        stays(pass_through_states, text, opset=opset)
    else:
        becomes(pass_through_states, text, opset=opset)


def test_a_loop_that_is_left_with_nothing_to_give_goes() -> None:
    text = loop("h1 = Identity (h)", outputs="float[2] h1", outer="z", results="float[2] z", go_on="c1 = Less (i, m)")
    becomes(pass_through_states, text, "g (float[2] s, float[3,2] xs) => (float[2] z) { z = Identity (s) }")
