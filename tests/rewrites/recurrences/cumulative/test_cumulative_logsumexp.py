"""Running log-sum-exps in many forms: their numbers, corner values, and near misses that stay in the loop."""

from itertools import product

import numpy as np
import pytest

from rewrites.base.abilities import Abilities
from rewrites.graph.context import Options
from rewrites.native import native_loop
from rewrites.recurrences.cumulative import cumulative_logsumexp
from tests.rewrites.apply import apply, patches
from tests.rewrites.harness import becomes, scan, stays
from tests.support.runtime import ort_session, run_session
from tests.support.text import model_from_text

BY_LARGER = "m = Max (s, x) a = Sub (s, m) b = Sub (x, m) c = Exp (a) d = Exp (b) e = Add (c, d) f = Log (e) n = Add (m, f)"
BY_GAP = "m = Max (s, x) a = Sub (s, x) b = Abs (a) c = Neg (b) d = Exp (c) e = Add (one, d) f = Log (e) n = Add (m, f)"
SPELLINGS = {
    "by the larger": BY_LARGER,
    "by the gap": BY_GAP,
    "by Softplus": "a = Sub (x, s) b = Softplus (a) n = Add (s, b)",
    "by a logarithm of one and more": "a = Sub (x, s) b = Exp (a) c = Add (one, b) d = Log (c) n = Add (d, s)",
    "plainly": "a = Exp (s) b = Exp (x) c = Add (a, b) n = Log (c)",
    "side by side": "a = Unsqueeze (s, z) b = Unsqueeze (x, z) c = Concat <axis = 0> (a, b) n = ReduceLogSumExp <keepdims = 0> (c, z)",
    "with a choice for what is no number": "m = Max (s, x) a = Sub (s, x) i = IsNaN (a) j = Add (s, x) b = Abs (a) c = Neg (b)"
    " d = Exp (c) e = Add (one, d) f = Log (e) g = Add (m, f) n = Where (i, j, g)",
}
FORWARDS = "num_scan_inputs = 1"
BACKWARDS = "num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1]"


def text(step: str, steps: int | str = 40, shape: str = "2", kind: str = "float", seen: str = "n", **parts: str) -> str:
    one, stack = f"{kind}[{shape}]", f"{kind}[{steps},{shape}]"
    return scan(
        f"{step} y = Identity ({seen})",
        **{
            "inputs": f"{one} s, {one} x",
            "outputs": f"{one} n, {one} y",
            "given": f"{one} s0, {stack} xs",
            "operands": "s0, xs",
            "results": f"{one} last, {stack} ys",
            "outer": "last, ys",
            "weights": f"{kind} one = {{1}}, int64[1] z = {{0}}",
        }
        | parts,
    )


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"attributes": BACKWARDS, "seen": "s"},
        {"kind": "double", "shape": "2,3"},
        {"steps": "T", "shape": "B,2"},
        {"outputs": "float[2] n, float[2] w", "results": "float[2] last", "seen": "n"},
    ],
    ids=["forwards", "before each step, backwards", "in double", "of free sizes", "the last value alone"],
)
def test_the_sums_are_those_of_the_loop(spelling: str, parts: dict[str, str]) -> None:
    after, _ = becomes(cumulative_logsumexp, text(SPELLINGS[spelling], **parts).replace("float[2] w", "float[2] y"), T=40, B=3)
    assert [node.op_type for node in after.graph.node].count("If") == 1
    assert all(node.op_type != "Scan" for node in after.graph.node)


CORNERS = (np.nan, np.inf, -np.inf, 3e38, -3e38, 200.0, -200.0, 0.0)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_infinities_nan_and_large_numbers_equal_those_of_the_loop(spelling: str) -> None:
    before = text(SPELLINGS[spelling])
    after, report = apply(before, [cumulative_logsumexp])
    assert patches(report) == ["cumulative-logsumexp"]
    sessions = [ort_session(model_from_text(before, 18)), ort_session(after)]
    draw = np.random.default_rng(0)
    for initial, first, later in product(CORNERS, repeat=3):
        xs = draw.standard_normal((40, 2)).astype(np.float32)
        xs[0, 0], xs[draw.integers(1, 40), draw.integers(2)] = first, later
        feeds = {"s0": np.array([initial, 0.5], np.float32), "xs": xs}
        for theirs, mine in zip(*(run_session(session, feeds) for session in sessions), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=2e-5)


def test_the_sums_are_at_least_as_accurate_as_the_loop() -> None:
    before = text(BY_LARGER, 4096)
    after, _ = apply(before, [cumulative_logsumexp])
    xs = np.random.default_rng(0).standard_normal((4096, 2)).astype(np.float32) * 3
    feeds = {"s0": np.full(2, -np.inf, np.float32), "xs": xs}
    exact = np.logaddexp.accumulate(xs.astype(np.float64), axis=0)
    loops, mine = (np.abs(run_session(ort_session(one), feeds)[1] - exact).max() for one in (model_from_text(before, 18), after))
    assert mine <= loops


NEAR_MISSES = {
    "another base": BY_LARGER.replace("Exp (a)", "Sigmoid (a)"),
    "twice what comes": BY_LARGER.replace("n = Add (m, f)", "g = Add (f, f) n = Add (m, g)"),
    "the smaller": BY_LARGER.replace("Max", "Min").replace("Sub (x, m)", "Sub (m, x)"),
    "more than one added": BY_GAP.replace("Add (one, d)", "Add (two, d)"),
    "taken off": SPELLINGS["plainly"].replace("c = Add (a, b)", "c = Sub (a, b)"),
    "kept from below": BY_LARGER.replace("n = Add (m, f)", "g = Add (m, f) n = Max (g, floor)"),
    "of two values": BY_LARGER.replace("Sub (x, m)", "Sub (v, m)"),
}


@pytest.mark.parametrize("miss", NEAR_MISSES)
def test_near_misses_stay(miss: str) -> None:
    weights = "float one = {1}, float two = {2}, float floor = {-1e20}, float[2] v = {0.5, 0.25}, int64[1] z = {0}"
    stays(cumulative_logsumexp, text(NEAR_MISSES[miss], weights=weights))


def test_few_steps_stay() -> None:
    stays(cumulative_logsumexp, text(BY_LARGER, 4), "CUMULATIVE-COST")


def test_a_target_without_if_has_no_fallback() -> None:
    target = Options(target=Abilities("no branches", frozenset({"Scan"})))
    _, report = apply(text(BY_LARGER), [cumulative_logsumexp], options=target)
    assert [reason.code for one in report.loops for reason in one.reasons] == ["LINEAR-CORNERS"]


def test_stacks_over_the_memory_budget_keep_the_loop() -> None:
    stays(cumulative_logsumexp, text(BY_LARGER, 100_000, "2000"), "MEMORY-BUDGET")


def test_loops_with_a_plan_and_fallback_loops_stay() -> None:
    _, report = apply(text(BY_LARGER, 400), [cumulative_logsumexp, native_loop])
    assert patches(report) == ["native-loop"]
    after, _ = apply(text(BY_LARGER), [cumulative_logsumexp])
    _, report = apply(after, [cumulative_logsumexp])
    assert patches(report) == []


def test_a_reduce_log_sum_exp_that_overflows_stays() -> None:
    stays(cumulative_logsumexp, text(SPELLINGS["side by side"]), opset=28)
    assert patches(apply(text(SPELLINGS["side by side"]), [cumulative_logsumexp], opset=27)[1]) == ["cumulative-logsumexp"]
