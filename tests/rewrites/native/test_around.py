"""Cheap operators on whole stacks beside a loop are done in its plan, and stand beside the Scan in the function that it calls."""

import numpy as np
import pytest

from rewrites.native import native_loop
from tests.rewrites.apply import apply
from tests.rewrites.harness import scan
from tests.rewrites.native.test_native_loop import calls, plan_of, without_plans
from tests.support.text import assert_text_equal

FEEDS = {"s": np.float32([1, -2]), "xs": np.arange(6, dtype=np.float32).reshape(3, 2), "w": np.float32([0.5, 2])}
GIVEN = "float[2] s, float[3,2] xs, float[2] w"
BODY = "h1 = Add (h, x) y = Tanh (h1)"


def outside(text: str) -> list[str]:
    """The operators that are left beside the call."""
    feeds = {name: array for name, array in FEEDS.items() if f"] {name}," in text or f"] {name})" in text}
    after, _ = apply(text, [native_loop], feeds=feeds)
    assert len(calls(after)) == 1
    return [node.op_type for node in after.graph.node if node.op_type != "Scan1"]


def test_what_makes_and_reads_stacks_alone_goes_into_the_plan_and_the_function() -> None:
    text = scan(BODY, given=GIVEN, before="a = Mul (xs, w) b = Sub (k, a)", after="r = Max (ys, xs)", operands="s, b",
                results="float[2] z, float[3,2] r", weights="float k = {2}")  # fmt: skip
    after, _ = apply(text, [native_loop], feeds=FEEDS)
    expected = """<ir_version: 10, opset_import: ["": 18, "ai.ortscan": 1]>
        g (float[2] s, float[3,2] xs, float[2] w) => (float[2] z, float[3,2] r) {
            z, r = ai.ortscan.Scan1:l0 <plan = "..."> (s, xs, w)
        }
        <domain: "ai.ortscan", overload: "l0", opset_import: ["": 18]>
        Scan1 <plan> (s_1, xs_1, w_1) => (loop_h1, r_2) {
            k_1 = Constant <value = float {2}> ()
            a_1 = Mul (xs_1, w_1)
            b_1 = Sub (k_1, a_1)
            loop_h1, loop_y = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] x) => (float[2] h1, float[2] y) {
                h1 = Add (h, x) y = Tanh (h1)
            }> (s_1, b_1)
            r_2 = Max (loop_y, xs_1)
        }"""
    assert_text_equal(without_plans(after), expected)
    assert len(plan_of(calls(after)[0]).outputs) == 1


def test_what_is_read_after_the_loop_and_elsewhere_is_stacked_too() -> None:
    text = scan(BODY, after="r = Neg (ys) q = Exp (ys) p = Exp (r)", results="float[2] z, float[3,2] q, float[3,2] p, float[3,2] r")
    assert outside(text) == ["Exp", "Exp"]


def test_axes_of_one_are_put_in() -> None:
    text = scan("a = Squeeze (x, last) h1 = Add (h, a) y = Tanh (h1)", inputs="float[2] h, float[2,1] x", before="u = Unsqueeze (xs, last)",
                operands="s, u", weights="int64[1] last = {-1}")  # fmt: skip
    assert outside(text) == []
    assert outside(text.replace("last = {-1}", "last = {2}").replace("Squeeze (x, last)", "Squeeze (x)")) == []


@pytest.mark.parametrize(
    ("before", "operands", "kept"),
    [
        ("a = Neg (xs) e = Exp (a)", "s, a", ["Neg", "Exp"]),  # read elsewhere
        ("a = Exp (xs)", "s, a", ["Exp"]),  # not cheap
        ("a = Unsqueeze (s, zero) b = Mul (xs, a)", "s, b", ["Unsqueeze", "Mul"]),  # the same row for each step, by an axis of 1
        ("n = Neg (xs) c = Shape (n) a = Neg (n)", "s, a", ["Neg", "Shape"]),
    ],
)
def test_what_is_no_pass_over_rows_stays_outside(before: str, operands: str, kept: list[str]) -> None:
    more = "e = " in before
    results = "float[2] z, float[3,2] ys" + (", float[3,2] e" if more else ", int64[2] c" if "c = " in before else "")
    assert outside(scan(BODY, before=before, operands=operands, results=results, weights="int64[1] zero = {0}")) == kept


def test_a_stack_that_the_body_reads_as_a_whole_stays_outside() -> None:
    body = "t = ReduceSum <keepdims = 0> (n, zero) h1 = Add (h, x) y = Mul (h1, t)"
    assert outside(scan(body, before="n = Neg (xs)", operands="s, n", weights="int64[1] zero = {0}")) == ["Neg"]
    body = "t = ReduceSum <keepdims = 0> (xs, zero) h1 = Add (h, x) y = Mul (h1, t)"
    assert outside(scan(body, before="n = Neg (xs)", operands="s, n", weights="int64[1] zero = {0}")) == ["Neg"]


def test_rows_in_both_directions_stay_outside() -> None:
    text = scan(
        "a = Add (x, x2) h1 = Add (h, a) y = Tanh (h1)",
        inputs="float[2] h, float[2] x, float[2] x2",
        attributes="num_scan_inputs = 2, scan_input_directions = [0, 1]",
        before="n = Neg (xs)",
        operands="s, n, xs",
    )
    assert outside(text) == ["Neg"]
    assert outside(text.replace("[0, 1]", "[1, 1]")) == []
    assert outside(scan(BODY, after="r = Sub (ys, xs)", results="float[2] z, float[3,2] r",
                        attributes="num_scan_inputs = 1, scan_output_directions = [1]")) == ["Sub"]  # fmt: skip


def test_what_comes_after_and_reads_another_result_stays_outside() -> None:
    assert outside(scan(BODY, after="r = Mul (ys, z)", results="float[2] z, float[3,2] r")) == ["Mul"]


def test_results_of_several_stacks_come_in_the_order_of_the_stacks_from_the_last_on() -> None:
    places = range(6)
    text = scan(
        "h1 = Add (h, x) " + " ".join(f"y{k} = Tanh (h1)" for k in places),
        outputs=", ".join(["float[2] h1", *(f"float[2] y{k}" for k in places)]),
        outer=", ".join(["z", *(f"ys{k}" for k in places)]),
        after=" ".join(f"r{k} = Neg (ys{k})" for k in places),
        results=", ".join(["float[2] z", *(f"float[3,2] r{k}" for k in places)]),
    )
    after, _ = apply(text, [native_loop], feeds={name: FEEDS[name] for name in ("s", "xs")})
    (call,) = calls(after)
    assert list(call.output) == ["z", *(f"r{k}" for k in reversed(places))]
