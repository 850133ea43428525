"""Loops with an unknown number of steps that run in blocks: their numbers for any number of steps, and loops that stay."""

import re

import numpy as np
import pytest

from rewrites.fission import loop_fission, state_fission
from rewrites.graph.context import Options
from rewrites.native import native_loop
from rewrites.recurrences import blocks_of_steps
from rewrites.recurrences.cells import recurrent_cell
from rewrites.recurrences.cumulative import cumulative
from rewrites.recurrences.linear import constant_filter, gated_recurrence, linear_recurrence
from rewrites.repair import guard_scan
from tests.rewrites.apply import apply, patches
from tests.rewrites.harness import stays
from tests.rewrites.recurrences.linear.test_gated_recurrence import gated
from tests.rewrites.recurrences.test_masked_cells import STEPS as MASKED_STEPS
from tests.rewrites.recurrences.test_masked_cells import masked
from tests.support.runtime import ort_run, ort_session, run_session

RULES = [constant_filter, cumulative, linear_recurrence, gated_recurrence, blocks_of_steps]
SECOND = (
    "p = Mul (half, a) y = Add (p, s) q = Mul (half, y) d = Sub (b, q) n = Sub (d, p)"  # what is left depends on what comes out
)
BODIES = {
    "gated": ("m = Mul (a, s) n = Add (m, b) y = Identity (n)", gated_recurrence),
    "seen before each step": ("m = Mul (a, s) n = Add (m, b) y = Identity (s)", gated_recurrence),
    "decaying": ("d = Mul (s, half) e = Mul (a, b) n = Add (d, e) y = Identity (n)", constant_filter),
    "a filter": (SECOND, constant_filter),
    "the largest": ("m = Mul (a, b) n = Max (s, m) y = Identity (n)", cumulative),
}
STEPS = (1, 127, 128, 129, 300, 384)


def numbers(steps: int, *row: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(steps)
    stacks = {name: draw.uniform(0.5, 1, (steps, *row)).astype(np.float32) for name in ("as", "bs")}
    return {"s0": np.ones(row, np.float32), **stacks}


def written(name: str, shape: str = "", directions: str = "") -> str:
    """Return the loop ``name``. Its rows have the unknown size D, unless the rule needs blocks for rows of a known size, too."""
    own = "2" if BODIES[name][1] is cumulative else "D"
    return gated("T", BODIES[name][0], shape or own, attributes="num_scan_inputs = 2" + directions)


@pytest.mark.parametrize("name", BODIES)
def test_any_number_of_steps_computes_the_same_as_the_loop(name: str) -> None:
    before, _ = apply(written(name), [])
    after, report = apply(written(name), RULES)
    fired = [patch.rule for patch in report.patches]
    assert fired[:2] == ["blocks-of-steps", BODIES[name][1].RULE.name]
    loop, mine = ort_session(before), ort_session(after)
    for steps in STEPS:
        for one, other in zip(run_session(loop, numbers(steps, 2)), run_session(mine, numbers(steps, 2)), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", BODIES)
def test_a_guard_around_a_fallback_does_not_make_it_a_loop_to_rewrite_again(name: str) -> None:
    _, report = apply(written(name), [guard_scan, loop_fission, *RULES])
    assert "guard-scan" in patches(report)
    assert patches(report).count("blocks-of-steps") == 1
    assert len(patches(report)) < 12


DIRECTIONS = {
    "backwards": ", scan_input_directions = [1, 1], scan_output_directions = [1]",
    "one input, and written forwards": ", scan_input_directions = [0, 1]",
    "only written": ", scan_output_directions = [1]",
}


@pytest.mark.parametrize("directions", DIRECTIONS.values(), ids=DIRECTIONS.keys())
@pytest.mark.parametrize("name", ["gated", "seen before each step", "the largest"])
def test_backward_loops_compute_the_same(name: str, directions: str) -> None:
    before, _ = apply(written(name, directions=directions), [])
    after, report = apply(written(name, directions=directions), RULES)
    assert next(patch.rule for patch in report.patches) == "blocks-of-steps"
    loop, mine = ort_session(before), ort_session(after)
    for steps in STEPS:
        feeds = numbers(steps, 2)
        feeds["bs"][steps // 3, 0] = np.inf
        for one, other in zip(run_session(loop, feeds), run_session(mine, feeds), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)


LARGEST = "g = Greater (a, s) n = Where (g, a, s) m = Where (g, b, r) y = Identity (m)"
"""A running maximum, and the value that came with it."""


def of_two_states(inside: str, directions: str = "", size: str = "2") -> str:
    text = gated(
        "T",
        inside,
        inputs="float[2] s, float[2] r, float[2] a, float[2] b",
        outputs="float[2] n, float[2] m, float[2] y",
        attributes="num_scan_inputs = 2" + directions,
        given="float[2] s0, float[2] r0, float[T,2] as, float[T,2] bs",
        operands="s0, r0, as, bs",
        results="float[2] z, float[2] w, float[T,2] ys",
        outer="z, w, ys",
    )
    return re.sub(r"\b2\] (?!each)", f"{size}] ", text)


@pytest.mark.parametrize("directions", ["", DIRECTIONS["backwards"]])
def test_states_that_leave_one_by_one_leave_in_blocks(directions: str) -> None:
    before, _ = apply(of_two_states(LARGEST, directions), [])
    after, report = apply(of_two_states(LARGEST, directions), RULES)
    assert [patch.rule for patch in report.patches] == ["blocks-of-steps", "cumulative", "cumulative"]
    loop, mine = ort_session(before), ort_session(after)
    for steps in STEPS:
        feeds = numbers(steps, 2) | {"r0": np.zeros(2, np.float32)}
        feeds["as"][steps // 2, 0], feeds["as"][steps // 3, 1] = np.nan, np.inf
        for one, other in zip(run_session(loop, feeds), run_session(mine, feeds), strict=True):
            np.testing.assert_array_equal(one, other)


def test_independent_states_are_separated_in_blocks() -> None:
    apart = "m1 = Mul (a, s) n = Add (m1, b) m2 = Mul (b, r) m = Add (m2, a) y = Identity (m)"
    before, _ = apply(of_two_states(apart, size="D"), [])
    after, report = apply(of_two_states(apart, size="D"), [state_fission, *RULES])
    fired = [patch.rule for patch in report.patches]
    assert fired[:4] == ["blocks-of-steps", "state-fission", "gated-recurrence", "gated-recurrence"]
    feeds = numbers(300, 2) | {"r0": np.zeros(2, np.float32)}
    for one, other in zip(ort_run(before, feeds), ort_run(after, feeds), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("usual", [3, 64])
def test_a_cell_that_does_not_pay_for_few_steps_is_no_reason_for_blocks(usual: int) -> None:
    model = masked("LSTM", "Where", "the state")
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.shape.dim[0].dim_value == MASKED_STEPS:
            value.type.tensor_type.shape.dim[0].dim_param = "T"
    _, report = apply(model, [recurrent_cell, blocks_of_steps], options=Options(assumed_dim=usual))
    assert [patch.rule for patch in report.patches] == (["recurrent-cell"] if usual > 3 else [])


def test_a_state_that_stays_keeps_the_other_states_in_the_loop() -> None:
    bent = LARGEST.replace("m = Where (g, b, r)", "p = Sin (r) m = Where (g, b, p)")
    assert patches(apply(of_two_states(bent), RULES)[1]) == []


def test_zero_steps_are_still_rejected_at_run_time() -> None:
    for directions in ("", DIRECTIONS["backwards"]):
        for rules in ([], RULES):
            with pytest.raises(Exception, match="ONNXRuntimeError"):
                ort_run(apply(written("gated", directions=directions), rules)[0], numbers(0, 2))


def test_infinities_and_nan_equal_those_of_the_loop() -> None:
    before, after = apply(written("gated"), [])[0], apply(written("gated"), RULES)[0]
    feeds = numbers(300, 2)
    feeds["bs"][200, 0], feeds["bs"][10, 1] = np.inf, np.nan
    for one, other in zip(ort_run(before, feeds), ort_run(after, feeds), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6)


@pytest.mark.parametrize("name", ["gated", "the largest"])
@pytest.mark.parametrize("row", [(1, 4), (3, 70), (20, 20), (0, 4)])
def test_states_of_unknown_sizes_run_in_blocks_if_they_are_narrow(name: str, row: tuple[int, int]) -> None:
    before, (after, report) = apply(written(name, "B,C"), [])[0], apply(written(name, "B,C"), RULES)
    assert "with at most 256 numbers in a state" in report.loops[0].notes[0]  # of both sizes together, which 20 x 20 is not
    for one, other in zip(ort_run(before, numbers(200, *row)), ort_run(after, numbers(200, *row)), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("directions", ["", DIRECTIONS["backwards"], DIRECTIONS["one input, and written forwards"]])
@pytest.mark.parametrize("steps", [(200, 130), (130, 200), (256, 300)])
def test_stacks_of_different_lengths_are_still_rejected_at_run_time(steps: tuple[int, int], directions: str) -> None:
    text = gated("T", given="float[2] s0, float[T,2] as, float[U,2] bs", attributes="num_scan_inputs = 2" + directions)
    feeds = {"s0": np.ones(2, np.float32), "as": np.ones((steps[0], 2), np.float32), "bs": np.ones((steps[1], 2), np.float32)}
    for model in (apply(text, [])[0], apply(text, RULES)[0]):
        with pytest.raises(Exception, match="ONNXRuntimeError"):
            ort_run(model, feeds)


def test_the_usual_number_of_steps_decides_the_block_length() -> None:
    lengths = []
    for usual in (100, 1000, 10000):
        _, report = apply(written("gated"), RULES, options=Options(sizes={"T": usual, "D": 2}))
        lengths.append(next(patch.what for patch in report.patches if patch.rule == "blocks-of-steps").split(" steps")[0][-3:])
    assert lengths == [" 64", "256", "512"]


@pytest.mark.parametrize(("width", "blocks"), [(256, True), (257, False)])
def test_stacks_of_a_block_do_not_stay_in_the_cache(width: int, blocks: bool) -> None:
    _, report = apply(written("the largest", str(width)), RULES)
    assert ("blocks-of-steps" in [patch.rule for patch in report.patches]) == blocks


@pytest.mark.parametrize(
    "text", [gated("T", "t = Tanh (s) m = Mul (a, t) n = Add (m, b) y = Identity (n)"), gated("T", shape="4096"), gated(200)]
)
def test_no_recurrence_wide_states_and_loops_of_known_steps_stay(text: str) -> None:
    assert "blocks-of-steps" not in [patch.rule for patch in apply(text, [linear_recurrence, blocks_of_steps])[1].patches]
    _, report = apply(text, [gated_recurrence, blocks_of_steps])
    assert "blocks-of-steps" not in [patch.rule for patch in report.patches]


def test_loops_with_few_usual_steps_or_a_plan_stay() -> None:
    _, report = apply(written("gated"), [gated_recurrence, blocks_of_steps], options=Options(sizes={"T": 4}))
    assert patches(report) == []
    _, report = apply(written("gated"), [gated_recurrence, blocks_of_steps, native_loop])
    assert "blocks-of-steps" not in [patch.rule for patch in report.patches]


def test_the_rule_alone_does_nothing() -> None:
    stays(blocks_of_steps, written("gated"))
