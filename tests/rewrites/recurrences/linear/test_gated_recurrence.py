"""States with a decay that varies from step to step: their numbers, corner values, and loops that stay."""

from itertools import product

import numpy as np
import onnx
import pytest

from rewrites.base.abilities import Abilities
from rewrites.graph.context import Options
from rewrites.native import native_loop
from rewrites.recurrences import closed_form
from rewrites.recurrences.linear import gated_recurrence, linear_recurrence
from tests.rewrites.apply import apply, patches
from tests.rewrites.harness import becomes, scan, stays
from tests.support.runtime import ort_run, ort_session, run_session

PLAIN = "m = Mul (a, s) n = Add (m, b) y = Identity (n)"
BETWEEN = "d = Sub (b, s) m = Mul (a, d) n = Add (s, m) y = Identity (n)"
RATES = "float one = {1}, float half = {0.5}, float[2] each = {0.5, 0.25}"


def gated(steps: int | str, inside: str = PLAIN, shape: str = "2", kind: str = "float", **parts: str) -> str:
    """Return a loop that runs `inside` for `steps` steps and scans decays `a` and input terms `b` of `shape`."""
    one, stack = (f"{kind}[{shape}]", f"{kind}[{steps},{shape}]") if shape else (kind, f"{kind}[{steps}]")
    return scan(
        inside,
        **{
            "inputs": f"{one} s, {one} a, {one} b",
            "outputs": f"{one} n, {one} y",
            "attributes": "num_scan_inputs = 2",
            "given": f"{one} s0, {stack} as, {stack} bs",
            "operands": "s0, as, bs",
            "results": f"{one} z, {stack} ys",
            "weights": RATES.replace("float", kind),
        }
        | parts,
    )


BACKWARDS = "num_scan_inputs = 2, scan_input_directions = [1, 1]"
WAYS = {
    "of one number": gated(200, shape=""),
    "in one block": gated(16, shape="2,3"),
    "in blocks and a rest": gated(147, shape="2,3"),
    "in double": gated(100, kind="double"),
    "of free sizes": gated(200, shape="B,C"),
    "backwards": gated(70, attributes=BACKWARDS + ", scan_output_directions = [1]"),
    "backwards and written forwards": gated(70, attributes=BACKWARDS),
    "one way backwards": gated(70, attributes="num_scan_inputs = 2, scan_input_directions = [1, 0]"),
    "seen before each step": gated(70, PLAIN.replace("(n)", "(s)")),
    "given out twice": gated(
        70,
        f"{PLAIN} w = Identity (n)",
        outputs="float[2] n, float[2] y, float[2] w",
        results="float[70,2] ys, float[70,2] ws",
        outer="z, ys, ws",
    ),
    "a share of each": gated(70, "g = Sigmoid (a) h = Sub (one, g) m = Mul (h, s) k = Mul (g, b) n = Add (k, m) y = Identity (n)"),
    "twice by one gate": gated(
        70, "g = Sigmoid (a) m = Mul (g, s) k = Add (m, m) l = Mul (k, half) n = Add (l, b) y = Identity (n)"
    ),
    "with a drive that is read twice": gated(
        70, "g = Sigmoid (a) m = Mul (g, s) k = Add (m, b) l = Add (k, k) r = Mul (l, half) n = Add (r, b) y = Identity (n)"
    ),
    "on the way to another": gated(70, "g = Sigmoid (a) " + BETWEEN.replace("(a, d)", "(g, d)")),
    "by quotients and numbers": gated(
        70, "e = Exp (a) q = Div (s, e) r = Mul (q, each) k = Neg (r) l = Mul (k, half) n = Sub (b, l) y = Identity (n)"
    ),
    "by one number a row": gated(
        70,
        shape="2,3",
        inputs="float[2,3] s, float[2,1] a, float[2,3] b",
        given="float[2,3] s0, float[70,2,1] as, float[70,2,3] bs",
        weights="float one = {1}",
    ),
    "by one number in all": gated(
        70,
        shape="2,3",
        inputs="float[2,3] s, float a, float[2,3] b",
        given="float[2,3] s0, float[70] as, float[70,2,3] bs",
        weights="float one = {1}",
    ),
    "two states": gated(
        100,
        "m = Mul (a, s) n = Add (m, b) k = Mul (r, b) t = Add (k, a) y = Identity (t)",
        inputs="float[2] s, float[2] r, float[2] a, float[2] b",
        outputs="float[2] n, float[2] t, float[2] y",
        operands="s0, s0, as, bs",
        results="float[2] z, float[2] w, float[100,2] ys",
        outer="z, w, ys",
    ),
}
PRODUCT = "n = Mul (s, a) y = Identity (n)"
PRODUCTS = {
    "a product": gated(200, PRODUCT),
    "a product in one block": gated(16, PRODUCT, shape=""),
    "a product in double": gated(147, PRODUCT, kind="double"),
    "a product of free sizes": gated(70, PRODUCT, shape="B,C"),
    "a product backwards": gated(70, PRODUCT, attributes=BACKWARDS + ", scan_output_directions = [1]"),
    "a product before each step": gated(70, "n = Mul (a, s) y = Identity (s)"),
    "a product of shares": gated(70, "h = Sigmoid (a) d = Add (h, half) n = Div (s, d) y = Identity (n)"),
    "a product by one number a row": gated(
        70,
        PRODUCT,
        shape="2,3",
        inputs="float[2,3] s, float[2,1] a, float[2,3] b",
        given="float[2,3] s0, float[70,2,1] as, float[70,2,3] bs",
    ),
}
FREELY = Options(sizes={"B": 1, "C": 4})


@pytest.mark.parametrize("way", [*WAYS, *PRODUCTS])
def test_the_states_are_those_of_the_loop(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closed_form, "MARGIN", 0.01)
    after, _ = becomes(gated_recurrence, (WAYS | PRODUCTS)[way], B=3, C=5, options=FREELY)
    assert [node.op_type for node in after.graph.node].count("If") == 1
    assert all(node.op_type != "Scan" for node in after.graph.node)


CORNERS = (np.nan, np.inf, -np.inf, 3e38, 1e-30, -0.0)


@pytest.mark.parametrize("inside", [PLAIN, BETWEEN])
@pytest.mark.parametrize("least", [0.0, -1.0])
def test_infinities_nan_and_zeros_equal_those_of_the_loop(inside: str, least: float) -> None:
    text = gated(100, inside)
    after, report = apply(text, [gated_recurrence])
    assert patches(report) == ["gated-recurrence"]
    sessions = [ort_session(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]>\n{text}')), ort_session(after)]
    random = np.random.default_rng(3)
    for initial, one, other in product(CORNERS, repeat=3):
        xs = random.choice([0.0, -0.0, 1.0], (100, 2), p=[0.5, 0.45, 0.05]).astype(np.float32)
        decays = random.uniform(least, 1, (100, 2)).astype(np.float32)
        decays[random.integers(100), 0], xs[random.integers(100), random.integers(2)] = one, other
        feeds = {"s0": np.full(2, initial, np.float32), "as": decays, "bs": xs}
        for theirs, mine in zip(*(run_session(session, feeds) for session in sessions), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)
            np.testing.assert_array_equal(np.signbit(mine[theirs == 0]), np.signbit(theirs[theirs == 0]))


@pytest.mark.parametrize("start", [1.0, -2.0, 0.0, -0.0, 1e30, 1e-30, np.inf, np.nan])
@pytest.mark.parametrize("factors", [(1.0,), (1.0, -1.0), (1e-20, 1e20), (1e20, 1e-20), (0.0, 2.0), (np.inf, 0.5), (0.5,), (2.0,)])
def test_products_equal_those_of_the_loop(start: float, factors: tuple[float, ...]) -> None:
    text = gated(100, PRODUCT)
    after, report = apply(text, [gated_recurrence])
    assert patches(report) == ["gated-recurrence"]
    decays = np.resize(np.array(factors, np.float32), (100, 2))
    decays[:, 1] = np.roll(decays[:, 1], 3)
    feeds = {"s0": np.full(2, start, np.float32), "as": decays, "bs": decays}
    before = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]>\n{text}')
    for theirs, mine in zip(ort_run(before, feeds), ort_run(after, feeds), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=0)
        np.testing.assert_array_equal(np.signbit(mine[theirs == 0]), np.signbit(theirs[theirs == 0]))


def test_decays_whose_products_overflow_are_left_to_the_loop() -> None:
    text = gated(100)
    after, _ = apply(text, [gated_recurrence])
    feeds = {"s0": np.zeros(2, np.float32), "as": np.full((100, 2), 1e5, np.float32), "bs": np.zeros((100, 2), np.float32)}
    for mine in ort_run(after, feeds):
        assert (mine == 0).all()


def test_decays_far_above_1_are_left_to_the_loop() -> None:
    text = gated(100, BETWEEN)
    after, _ = apply(text, [gated_recurrence])
    feeds = {"s0": np.ones(2, np.float32), "as": np.full((100, 2), 1e30, np.float32), "bs": np.ones((100, 2), np.float32)}
    for mine in ort_run(after, feeds):
        assert (mine == 1).all()


def test_errors_are_no_larger_than_four_times_those_of_the_loop() -> None:
    text = gated(3000, shape="4")
    after, _ = apply(text, [gated_recurrence])
    before = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]>\n{text}')
    random = np.random.default_rng(5)
    feeds = {
        "s0": random.standard_normal(4).astype(np.float32),
        "as": random.uniform(0.99, 1, (3000, 4)).astype(np.float32),
        "bs": random.standard_normal((3000, 4)).astype(np.float32),
    }
    exact, state = [], feeds["s0"].astype(np.float64)
    for decay, drive in zip(feeds["as"], feeds["bs"], strict=True):
        state = decay * state + drive
        exact.append(state)
    mine, theirs = (np.abs(ort_run(model, feeds)[1] - exact).max() for model in (after, before))
    assert mine <= 4 * theirs


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (gated("T", shape="B"), "LINEAR-STEPS"),
        (gated("T", PRODUCT), "LINEAR-STEPS"),
        (gated(8), "COST-LINEAR"),
        (gated(4096, shape="1024"), "COST-LINEAR"),
        (gated(100000, shape="1000"), "MEMORY-BUDGET"),
        (
            gated(500, inputs="float[2] s, float[2] a, float[1] b", given="float[2] s0, float[500,2] as, float[500,1] bs"),
            "LINEAR-SHAPE",
        ),
    ],
)
def test_unsupported_or_slower_loops_stay(text: str, code: str) -> None:
    stays(gated_recurrence, text, code)


def test_the_reason_for_unknown_steps_says_how_many_would_be_faster() -> None:
    stays(gated_recurrence, gated("T", shape="B"), "LINEAR-STEPS", detail="for 64 or more")


def test_stacks_over_the_memory_budget_keep_the_loop() -> None:
    large = "w0 = Expand (a, size) v = ReduceMax <keepdims = 0> (w0, axes) m = Mul (v, s) n = Add (m, b) y = Identity (n)"
    stays(gated_recurrence, gated(300, large, weights="int64[2] size = {1000000, 2}, int64[1] axes = {0}"), "MEMORY-BUDGET")


@pytest.mark.parametrize(
    "inside",
    [
        "m = Mul (a, s) k = Add (m, b) n = Tanh (k) y = Identity (n)",
        "g = Sigmoid (s) m = Mul (g, s) n = Add (m, b) y = Identity (n)",
        "m = Mul (s, s) n = Add (m, b) y = Identity (n)",
        "m = Div (a, s) n = Add (m, b) y = Identity (n)",
        "m = Mul (a, s) n = Add (m, b) y = Mul (n, a)",
        "n = Mul (a, s) y = Identity (b)",
        "m = Mul (a, s) k = Max (m, b) n = Add (k, b) y = Identity (n)",
    ],
)
def test_loops_that_are_not_linear_or_have_no_input_term_stay(inside: str) -> None:
    stays(gated_recurrence, gated(1000, inside))


def test_a_constant_decay_is_left_to_the_rule_that_needs_no_if() -> None:
    _, report = apply(gated(1000, "m = Mul (s, half) n = Add (m, b) y = Identity (n)"), [linear_recurrence, gated_recurrence])
    assert patches(report) == ["linear-recurrence"]


def test_a_loop_with_a_plan_stays() -> None:
    _, report = apply(gated(300), [gated_recurrence, native_loop])
    assert patches(report) == ["native-loop"]


def test_a_fallback_loop_is_not_rewritten_again() -> None:
    after, _ = apply(gated(300), [gated_recurrence])
    _, report = apply(after, [gated_recurrence])
    assert patches(report) == []


def test_a_target_without_if_has_no_fallback() -> None:
    target = Options(target=Abilities("no branches", frozenset({"Scan"})))
    _, report = apply(gated(300), [gated_recurrence], options=target)
    assert [reason.code for one in report.loops for reason in one.reasons] == ["LINEAR-CORNERS"]
