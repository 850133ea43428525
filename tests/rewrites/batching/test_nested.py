"""Scan, Loop and If inside a body, for all steps at once."""

import pytest

from tests.rewrites.batching.harness import BOOL, F32, I64, Arg, Case, case, check, const, emitted, given, refusal, same, steps

OPSETS = [9, 11, 13, 18, 21]
STEP = "b (float[2] h, float[2] a) => (float[2] h1, float[2] k) { h1 = Add (h, a)  k = Mul (h1, a) }"


def scan(attributes: str = "num_scan_inputs = 1", body: str = STEP, **args: Arg) -> Case:
    return case(f"s, y = Scan <{attributes}, body = {body}> (h0, xs)", **args)


@pytest.mark.parametrize("opset", OPSETS)
def test_a_scan_carries_the_steps_in_its_body(opset: int) -> None:
    check(
        [
            scan(h0=steps(F32, 2), xs=steps(F32, 4, 2)),
            scan(h0=same(F32, 2), xs=steps(F32, 4, 2)),
            scan(h0=steps(F32, 2), xs=same(F32, 4, 2)),
            scan("num_scan_inputs = 1, scan_input_axes = [1]", h0=steps(F32, 2), xs=steps(F32, 2, 4)),
            scan("num_scan_inputs = 1, scan_output_axes = [1], scan_input_directions = [1]", h0=same(F32, 2), xs=steps(F32, 4, 2)),
            scan("num_scan_inputs = 1, scan_output_directions = [1]", h0=steps(F32, 2), xs=same(F32, 4, 2)),
        ],
        opset,
        empty=False,
    )


def test_negative_axes_of_a_scan_count_the_steps_too() -> None:
    attributes = "num_scan_inputs = 1, scan_input_axes = [-1], scan_output_axes = [-1]"
    check([scan(attributes, h0=steps(F32, 2), xs=steps(F32, 2, 4))], 11, empty=False)


def test_a_state_that_no_step_makes_different_stays_as_it_is() -> None:
    body = "b (float h, float c, float a) => (float h1, float c1, float k) { h1 = Add (h, a) c1 = Add (c, c) k = Neg (c) }"
    one = case(f"s, t, y = Scan <num_scan_inputs = 1, body = {body}> (h0, c0, xs)", h0=same(F32), c0=same(F32), xs=steps(F32, 4))
    check([one], empty=False)
    assert emitted(one).count("Expand") == 1


def test_states_become_different_by_way_of_each_other() -> None:
    body = "b (float h, float c, float a) => (float h1, float c1, float k) { h1 = Identity (c) c1 = Add (c, a) k = Neg (h) }"
    one = case(f"s, t, y = Scan <num_scan_inputs = 1, body = {body}> (h0, c0, xs)", h0=same(F32), c0=same(F32), xs=steps(F32, 4))
    check([one], empty=False)


def test_bodies_capture_what_carries_the_steps_and_what_does_not() -> None:
    body = (
        "b (float[2] h, float[2] a) => (float[2] h1, float[2] k) { p = Mul (w, a) h1 = Add (h, p) q = Add (v, w) k = Mul (q, h) }"
    )
    check([scan(body=body, h0=same(F32, 2), xs=same(F32, 4, 2), w=steps(F32, 2), v=same(F32, 2))], empty=False)


def test_a_body_may_return_its_input_an_outer_value_or_the_same_value_twice() -> None:
    body = "b (float[2] h, float[2] a) => (float[2] h1, float[2] k) { h1 = Identity (a) k = Identity (w) }"
    check([scan(body=body, h0=same(F32, 2), xs=steps(F32, 4, 2), w=steps(F32, 2))], empty=False)
    check([scan(body=body, h0=same(F32, 2), xs=steps(F32, 4, 2), w=same(F32, 2))], empty=False)


def test_a_scan_in_a_scan() -> None:
    inner = "s1, k = Scan <num_scan_inputs = 1, body = c (float p, float q) => (float p1, float r) { p1 = Add (p, q) r = Mul (p, w) }> (h, a)"
    body = f"b (float h, float[3] a) => (float h1, float[3] k) {{ {inner} h1 = Tanh (s1) }}"
    check([scan(body=body, h0=same(F32), xs=steps(F32, 4, 3), w=steps(F32))], empty=False)
    check([scan(body=body, h0=same(F32), xs=same(F32, 4, 3), w=steps(F32))], empty=False)


def test_an_operator_without_a_rule_inside_refuses_the_scan() -> None:
    body = "b (float[2,2] h, float[2,2] a) => (float[2,2] h1, int64[2,4] k) { h1 = Add (h, a) k = NonZero (h1) }"
    one = scan(body=body, h0=steps(F32, 2, 2), xs=steps(F32, 4, 2, 2))
    assert refusal(one, because_of="NonZero") == "DATA-DEPENDENT-SHAPE"


LOOP = "b (int64 i, bool c, float[2] h) => (bool c1, float[2] h1, float[2] k) { c1 = Identity (c) h1 = Add (h, w) k = Neg (h1) }"


def loop(body: str = LOOP, **args: Arg) -> Case:
    return case(f"s, y = Loop <body = {body}> (m, g, h0)", **args)


@pytest.mark.parametrize("opset", OPSETS)
def test_a_loop_of_the_same_trips_carries_the_steps_in_its_body(opset: int) -> None:
    trips = {"m": const(3), "g": const(True, BOOL)}
    check(
        [
            loop(**trips, h0=steps(F32, 2), w=same(F32, 2)),
            loop(**trips, h0=same(F32, 2), w=steps(F32, 2)),
            loop(**trips, h0=steps(F32, 2), w=steps(F32, 2)),
        ],
        opset,
        empty=False,
    )


def test_the_states_of_a_loop_may_be_there_after_no_trip() -> None:
    body = "b (int64 i, bool c, float[2] h) => (bool c1, float[2] h1) { c1 = Identity (c) h1 = Add (h, w) }"
    for trips in (0, 2):
        one = case(f"s = Loop <body = {body}> (m, , h0)", m=given(trips, I64), h0=same(F32, 2), w=steps(F32, 2))
        check([one], empty=False)


def test_what_stacks_up_over_trips_that_may_not_be_made_is_refused() -> None:
    assert refusal(loop(m=same(I64), g=const(True, BOOL), h0=steps(F32, 2), w=same(F32, 2))) == "EMPTY-STEPS"


def test_trips_that_differ_between_steps_are_refused() -> None:
    assert refusal(loop(m=steps(I64), g=const(True, BOOL), h0=steps(F32, 2), w=same(F32, 2))) == "BATCHED-STRUCTURE"
    body = LOOP.replace("c1 = Identity (c)", "r = ReduceSum <keepdims = 0> (h) c1 = Less (r, r)")
    assert refusal(loop(body, m=const(3), g=const(True, BOOL), h0=steps(F32, 2), w=same(F32, 2))) == "BATCHED-STRUCTURE"


IF = "y = If (c) <then_branch = t () => (float[2] p) { p = Mul (x, w) }, else_branch = e () => (float[2] q) { q = Neg (w) }>"


@pytest.mark.parametrize("opset", OPSETS)
def test_a_condition_that_is_the_same_in_every_step_keeps_its_branches(opset: int) -> None:
    cases = [case(IF, c=given(flag, BOOL), x=steps(F32, 2), w=same(F32, 2)) for flag in (True, False)]
    check([*cases, case(IF, c=given(False, BOOL), x=steps(F32, 2), w=steps(F32, 2))], opset, empty=False)


@pytest.mark.parametrize("opset", OPSETS)
def test_a_condition_that_differs_between_steps_runs_both_branches(opset: int) -> None:
    cases = [case(IF, c=given([True, False, True], BOOL, batched=True), x=one(F32, 2), w=same(F32, 2)) for one in (steps, same)]
    cases.append(case(IF, c=given([[False], [False], [True]], BOOL, batched=True), x=steps(F32, 2), w=steps(F32, 2)))
    check(cases, opset, empty=False)
    log = IF.replace("p = Mul (x, w)", "p = Log (x)")
    check([case(log, c=given([True, False, True], BOOL, batched=True), x=steps(F32, 2), w=same(F32, 2))], opset, empty=False)


def test_branches_that_might_fail_where_they_are_not_wanted_are_refused() -> None:
    looked_up = IF.replace("p = Mul (x, w)", "p = Gather (x, i)")
    args = {"c": steps(BOOL), "w": same(F32, 2)}
    assert refusal(case(looked_up, x=steps(F32, 2), i=same(I64, 2), **args)) == "BATCHED-CONDITION"
    assert refusal(case(IF, x=steps(F32, 2, dims=["N"]), **args)) == "BATCHED-CONDITION"
    divided = IF.replace("p = Mul (x, w)", "v = Div (i, i) p = CastLike (v, x)")
    assert refusal(case(divided, x=steps(F32, 2), i=steps(I64, 2), **args)) == "BATCHED-CONDITION"


def test_branches_of_different_shapes_are_refused() -> None:
    text = "y = If (c) <then_branch = t () => (float[2] p) { p = Neg (x) }, else_branch = e () => (float[3] q) { q = Neg (w) }>"
    assert refusal(case(text, c=steps(BOOL), x=steps(F32, 2), w=same(F32, 3))) == "BATCHED-STRUCTURE"


def test_an_operator_without_a_rule_in_the_second_branch_refuses_the_whole() -> None:
    text = IF.replace("q = Neg (w)", "d = NonZero (v) n = Shape (d) m = Cast <to = 1> (n) q = Mul (w, m)")
    one = case(text, c=given(True, BOOL), x=steps(F32, 2), w=same(F32, 2), v=steps(F32, 2, 2))
    assert refusal(one, because_of="NonZero") == "DATA-DEPENDENT-SHAPE"
