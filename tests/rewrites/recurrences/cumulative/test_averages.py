"""A running mean, in any form, becomes a CumSum followed by the last operations of the loop's own step."""

import numpy as np
import pytest

from rewrites.cleanup import fold_constants
from rewrites.fission import loop_fission
from rewrites.loop_form import loop_to_scan
from rewrites.recurrences.cumulative import cumulative
from rewrites.scan_form import induction_inputs
from tests.rewrites.apply import apply, patches
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

RULES = [fold_constants, loop_to_scan, induction_inputs, cumulative, loop_fission]
STEPS = {
    "added": "d = Sub (x, m)  e = Div (d, n)  m1 = Add (m, e)",
    "taken off": "d = Sub (m, x)  e = Div (d, n)  m1 = Sub (m, e)",
    "by the reciprocal": "i = Reciprocal (n)  d = Sub (x, m)  e = Mul (i, d)  m1 = Add (e, m)",
    "the sum divided": "p = Sub (n, one)  s = Mul (m, p)  t = Add (s, x)  m1 = Div (t, n)",
    "two shares": "p = Sub (n, one)  a = Div (p, n)  s = Mul (m, a)  t = Div (x, n)  m1 = Add (t, s)",
}
INFINITE = {
    "infinite": [[np.inf, 1], [1, -np.inf], [2, np.inf], [3, 4]],
    "not numbers": [[1, np.nan], [2, 1], [np.nan, 1], [1, 1]],
    "zeros of both signs": [[-0.0, 0.0], [-0.0, -0.0], [0.0, -0.0], [-0.0, -0.0]],
    "large": [[3e38, 1e38], [3e38, -1e38], [3e38, 1e38], [-3e38, 1e38]],
}


def written(
    step: str, *, steps: int | str = 4, start: str = "{0, 0}", counter: str = "float", first: int = 0, ways: int = 0, wants="ys"
) -> str:
    """Return a loop that updates a mean from `m` to `m1`. Its counter is a float, an integer, or a Loop's step number."""
    results = {"ys": f"float[{steps},2] ys", "z": "float[2] z", "both": f"float[2] z, float[{steps},2] ys, float[{steps},2] bs"}[
        wants
    ]
    given = f"float[{steps},2] xs" + ("" if start else ", float[2] m0")
    weights = (
        "<" + (f"float[2] m0 = {start}, " if start else "") + f"{'float' if counter == 'float' else 'int64'} c0 = {{{first}}}>"
    )
    ones = "one = Constant <value = float {1}> ()  whole = Constant <value = int64 {1}> ()  "
    counted = "k1 = Add (k, one)  n = Identity (k1)  " if counter == "float" else "k1 = Add (k, whole)  n = Cast <to = 1> (k1)  "
    kind = "float" if counter == "float" else "int64"
    return f"""g ({given}) => ({results}) {weights} {{
        z, c, ys, bs = Scan <num_scan_inputs = 1, scan_input_directions = [{ways}], scan_output_directions = [{ways}, 0],
            body = b (float[2] m, {kind} k, float[2] x) => (float[2] m1, {kind} k1, float[2] y, float[2] before) {{
                {ones} {counted} {step}  y = Identity (m1)  before = Identity (m) }}> (m0, c0, xs) }}"""


def means(text: str, feeds: dict[str, np.ndarray], exact: bool = False) -> list[str]:
    before = model_from_text(text, 18)
    after, _ = apply(before, RULES, feeds=feeds)
    assert not any(node.op_type == "Scan" for node in after.graph.node)
    for mine, loops in zip(ort_run(after, feeds), ort_run(before, feeds), strict=True):
        np.testing.assert_allclose(mine, loops, rtol=3e-6, atol=0 if exact else 1e-6)
        assert np.array_equal(np.signbit(mine[loops == 0]), np.signbit(loops[loops == 0]))
    return [node.op_type for node in after.graph.node]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("counter", "steps"), [("float", 4), ("int64", "T"), ("int64", 4)])
def test_every_form_of_a_mean_becomes_a_cumsum(step: str, counter: str, steps: int | str) -> None:
    xs = np.random.default_rng(0).standard_normal((4, 2)).astype(np.float32)
    assert "CumSum" in means(written(STEPS[step], counter=counter, steps=steps, wants="both"), {"xs": xs})


@pytest.mark.parametrize("ways", [0, 1])
@pytest.mark.parametrize("steps", [4, "T"])
@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("wants", ["ys", "z", "both"])
def test_an_initial_mean_has_the_weight_of_the_initial_count(wants: str, first: int, steps: int | str, ways: int) -> None:
    xs = np.random.default_rng(1).standard_normal((4, 2)).astype(np.float32)
    counter = "float" if steps == 4 else "int64"
    text = written(STEPS["added"], start="", first=first, steps=steps, ways=ways, wants=wants, counter=counter)
    means(text, {"xs": xs, "m0": np.array([3, -2], np.float32)})


@pytest.mark.parametrize("numbers", INFINITE)
@pytest.mark.parametrize("step", STEPS)
def test_infinities_zeros_and_large_numbers_equal_those_of_the_loop(step: str, numbers: str) -> None:
    xs = np.array(INFINITE[numbers], np.float32)
    means(written(STEPS[step], wants="both"), {"xs": xs}, exact=True)
    means(written(STEPS[step], first=1, start="", wants="both"), {"xs": xs, "m0": np.array([np.inf, -np.inf], np.float32)})
    for initial in ([np.inf, -0.0], [np.nan, 2]):
        means(written(STEPS[step], start="", wants="both"), {"xs": xs, "m0": np.array(initial, np.float32)})


def test_a_running_variance_is_computed_from_the_means() -> None:
    step = "d = Sub (x, m)  e = Div (d, k1)  m1 = Add (m, e)  r = Sub (x, m1)  p = Mul (d, r)  v1 = Add (v, p)"
    text = f"""g (float[50,2] xs) => (float[2] mean, float[2] variance, float[50,2] ys) <float[2] o = {{0, 0}}, float c0 = {{0}}> {{
        mean, variance, c, ys = Scan <num_scan_inputs = 1,
            body = b (float[2] m, float[2] v, float k, float[2] x) => (float[2] m1, float[2] v1, float k1, float[2] y) {{
                one = Constant <value = float {{1}}> ()  k1 = Add (k, one)  {step}  y = Div (v1, k1) }}> (o, o, c0, xs) }}"""
    xs = (np.random.default_rng(2).standard_normal((50, 2)) * 3 + 100).astype(np.float32)
    before = model_from_text(text, 18)
    after, _ = apply(before, RULES, feeds={"xs": xs})
    assert not any(node.op_type == "Scan" for node in after.graph.node)
    wide = xs.astype(np.float64)
    for mine, wanted in zip(ort_run(after, {"xs": xs})[:2], (wide.mean(0), wide.var(0) * 50), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-5)


@pytest.mark.parametrize("step", STEPS)
def test_a_float_counter_that_stops_requires_a_known_number_of_steps(step: str) -> None:
    xs = np.random.default_rng(3).standard_normal((8, 2)).astype(np.float32) * 2**20
    before = model_from_text(written(STEPS[step], first=2**24 - 4, steps="T", wants="both"), 18)
    _, report = apply(before, RULES[:-1], feeds={"xs": xs})
    assert ("CUMULATIVE-STEPS", "'m'") in {(one.code, one.detail[:3]) for loop in report.loops for one in loop.reasons}
    after, _ = apply(before, RULES, feeds={"xs": xs})
    for mine, loops in zip(ort_run(after, {"xs": xs}), ort_run(before, {"xs": xs}), strict=True):
        np.testing.assert_allclose(mine, loops, rtol=1e-6)


NEAR = {
    "a counter that starts below 0": ({"first": -1}, "added"),
    "steps of two": ({}, "k2 = Add (n, n)  d = Sub (x, m)  e = Div (d, k2)  m1 = Add (m, e)"),
    "a share of twice the number": ({}, "d = Sub (x, m)  e = Div (d, n)  f = Add (e, e)  m1 = Add (m, f)"),
    "a square root": ({}, "r = Sqrt (n)  d = Sub (x, m)  e = Div (d, r)  m1 = Add (m, e)"),
    "what comes in depends on the state": ({}, "u = Tanh (m)  d = Sub (u, m)  e = Div (d, n)  m1 = Add (m, e)"),
    "a product that may overflow": (
        {},
        "q = Mul (n, n)  s = Mul (x, n)  t = Div (s, q)  p = Sub (n, one)  u = Mul (m, p)  v = Div (u, n)  m1 = Add (v, t)",
    ),
    "more that comes in": ({}, "d = Sub (x, m)  e = Div (d, n)  f = Add (e, x)  m1 = Add (m, f)"),
}


@pytest.mark.parametrize("case", NEAR)
@pytest.mark.parametrize("steps", [4, "T"])
def test_near_misses_of_a_mean_stay_in_the_loop(case: str, steps: int | str) -> None:
    given, step = NEAR[case]
    _, report = apply(written(STEPS.get(step, step), steps=steps, **given), [fold_constants, cumulative])
    assert [name for name in patches(report) if name != "fold-constants"] in ([], ["cumulative"])
    assert "'m'" not in "".join(one.what for loop in report.loops for one in loop.fired)
