"""Decaying states for all steps at once: the nodes that are written, loops that stay, and corner values."""

from itertools import product

import numpy as np
import onnx
import pytest

from rewrites.base.abilities import Abilities
from rewrites.graph.context import Options
from rewrites.native import native_loop
from rewrites.recurrences.linear import linear_recurrence
from tests.rewrites.apply import apply, patches, reasons
from tests.rewrites.harness import becomes, scan, stays
from tests.support.runtime import ort_run, ort_session, run_session

ANYWHERE = Options(target=Abilities("bare", frozenset()))
"""A target without loops, so that no cost favours a loop."""
DECAYING = "m = Mul (h, a) h1 = Add (m, x) y = Identity (h1)"
NO_PLAN = "k = Shrink (x) m = Mul (h, a) h1 = Add (m, k) y = Identity (h1)"
MOVING_AVERAGE = "d = Sub (x, h) e = Mul (d, b) h1 = Add (h, e) y = Identity (h1)"


def decaying(steps: int | str, shape: str = "2", inside: str = DECAYING, kind: str = "float", **parts: str) -> str:
    """Return a loop that runs `inside` for `steps` steps, with a state of `shape` and a decay of 0.75."""
    state, stack = (f"{kind}[{shape}]", f"{kind}[{steps},{shape}]") if shape else (kind, f"{kind}[{steps}]")
    return scan(
        inside,
        **{
            "inputs": f"{state} h, {state} x",
            "outputs": f"{state} h1, {state} y",
            "given": f"{state} s, {stack} xs",
            "results": f"{state} z, {stack} ys",
            "weights": f"{kind} a = {{0.75}}, {kind} b = {{0.25}}",
        }
        | parts,
    )


def test_a_few_steps_are_one_block() -> None:
    becomes(
        linear_recurrence,
        decaying(3),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[3,2] ys) <
            int64[2] row = {1,-1}, float a = {0.75}, int64[2] rows = {4,-1},
            int64[1] one = {1}, int64[1] end = {9223372036854775807}, int64[1] zero = {0}, int64[1] last = {-1}> {
            s0 = Reshape (s, row)
            all = Concat <axis: int = 0> (s0, xs)
            flat = Reshape (all, row)
            b0, b1, b2, b3 = Split <axis: int = 1, num_outputs: int = 4> (flat)
            m1 = Mul (b0, a)
            h1 = Add (m1, b1)
            m2 = Mul (h1, a)
            h2 = Add (m2, b2)
            m3 = Mul (h2, a)
            h3 = Add (m3, b3)
            hs = Concat <axis: int = 1> (b0, h1, h2, h3)
            stack = Reshape (hs, rows)
            ys = Slice (stack, one, end, zero)
            tail = Slice (stack, last, end, zero)
            z = Squeeze (tail, zero)
        }""",
        options=ANYWHERE,
    )


def test_more_steps_run_in_blocks_that_add_the_decayed_state_before() -> None:
    becomes(
        linear_recurrence,
        decaying(15, "16"),
        """g (float[16] s, float[15,16] xs) => (float[16] z, float[15,16] ys) <
            int64[2] row = {1,-1}, int64[2] blocks = {4,-1}, float a = {0.75}, float a4 = {0.31640625}, int64[1] zero = {0},
            int64[1] last = {-1}, float[4,1] powers = {0.75, 0.5625, 0.421875, 0.31640625},
            float[1,16] nothing = {-0,-0,-0,-0,-0,-0,-0,-0,-0,-0,-0,-0,-0,-0,-0,-0}, int64[1] one = {1}, int64[3] apart = {4,4,-1},
            int64[2] rows = {16,-1}, int64[1] end = {9223372036854775807}> {
            s0 = Reshape (s, row)
            all = Concat <axis: int = 0> (s0, xs)
            flat = Reshape (all, blocks)
            b0, b1, b2, b3 = Split <axis: int = 1, num_outputs: int = 4> (flat)
            m1 = Mul (b0, a)
            h1 = Add (m1, b1)
            m2 = Mul (h1, a)
            h2 = Add (m2, b2)
            m3 = Mul (h2, a)
            h3 = Add (m3, b3)
            alone = Concat <axis: int = 1> (b0, h1, h2, h3)
            flat_ends = Reshape (h3, row)
            e0, e1, e2, e3 = Split <axis: int = 1, num_outputs: int = 4> (flat_ends)
            n1 = Mul (e0, a4)
            g1 = Add (n1, e1)
            n2 = Mul (g1, a4)
            g2 = Add (n2, e2)
            n3 = Mul (g2, a4)
            g3 = Add (n3, e3)
            gs = Concat <axis: int = 1> (e0, g1, g2, g3)
            ends = Reshape (gs, blocks)
            before = Slice (ends, zero, last, zero)
            shifted = Concat <axis: int = 0> (nothing, before)
            wide = Unsqueeze (shifted, one)
            left = Mul (wide, powers)
            in_blocks = Reshape (alone, apart)
            whole = Add (in_blocks, left)
            stack = Reshape (whole, rows)
            ys = Slice (stack, one, end, zero)
            tail = Slice (stack, last, end, zero)
            z = Squeeze (tail, zero)
        }""",
        options=ANYWHERE,
    )


BEFORE = "m = Mul (h, a) h1 = Add (m, x) y = Identity (h)"
WAYS = {
    "of one number": decaying(30, ""),
    "narrow": decaying(70, "3"),
    "wide": decaying(70, "3,4"),
    "in double": decaying(40, "3", kind="double"),
    "of a free size": decaying(40, "B"),
    "of free sizes": decaying(40, "B,C"),
    "with decays of its own in each channel": decaying(70, "2,2", weights="float[2] a = {0.25, 1}"),
    "wide, with decays in each row": decaying(70, "2,4", weights="float[2,1] a = {0.25, 1}"),
    "of a free size, with decays in each channel": decaying(70, "B,2", weights="float[2] a = {0.25, 1}"),
    "backwards": decaying(17, "2", attributes="num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1]"),
    "backwards and written forwards": decaying(17, "2", attributes="num_scan_inputs = 1, scan_input_directions = [1]"),
    "seen before each step": decaying(17, "2", BEFORE),
    "a moving average": decaying(33, "2", MOVING_AVERAGE),
    "a moving average seen before each step": decaying(33, "2", MOVING_AVERAGE.replace("(h1)", "(h)")),
    "by a quotient, taken off": decaying(33, "2", "m = Div (h, c) h1 = Sub (m, x) y = Identity (h1)", weights="float c = {1.5}"),
    "what a constant is added to": decaying(
        33, "2", "m = Mul (h, a) k = Mul (x, a) l = Add (k, b) h1 = Add (l, m) y = Identity (h1)"
    ),
    "on two ways": decaying(33, "2", "m = Mul (h, a) k = Neg (h) l = Add (m, x) n = Mul (k, b) h1 = Sub (l, n) y = Identity (h1)"),
    "with a constant of each channel added": decaying(
        33,
        "3",
        "m = Mul (h, a) k = Sub (m, c) h1 = Add (k, x) y = Identity (h1)",
        weights="float a = {0.75}, float[3] c = {1, 2, 3}",
    ),
    "by powers that come to nothing": decaying(300, "2", weights="float a = {0.1}"),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_states_are_those_of_the_loop(way: str) -> None:
    after, _ = becomes(linear_recurrence, WAYS[way], options=ANYWHERE, B=3, C=5)
    assert all(node.op_type != "Scan" for node in after.graph.node)


def test_several_states_leave_together() -> None:
    inside = "m = Mul (h, a) h1 = Add (m, x) n = Mul (g, b) g1 = Add (n, x) y = Identity (g1)"
    text = decaying(
        20,
        inside=inside,
        inputs="float[2] h, float[2] g, float[2] x",
        outputs="float[2] h1, float[2] g1, float[2] y",
        operands="s, s, xs",
        results="float[2] z, float[2] w, float[20,2] ys",
        outer="z, w, ys",
    )
    becomes(linear_recurrence, text, options=ANYWHERE)


CORNERS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0)


def same_class(one: np.ndarray, other: np.ndarray) -> None:
    """Assert that both are close and have NaN, infinities and zeros, with their signs, at the same indices."""
    np.testing.assert_allclose(one, other, rtol=1e-5)
    np.testing.assert_array_equal(one == 0, other == 0)
    signed = ~np.isnan(one)
    np.testing.assert_array_equal(np.signbit(one[signed]), np.signbit(other[signed]))


@pytest.mark.parametrize("inside", [DECAYING, MOVING_AVERAGE, BEFORE])
@pytest.mark.parametrize("shape", ["2", "8"])
@pytest.mark.parametrize("decay", [0.5, 1e-3])
def test_infinities_nan_and_zeros_affect_the_same_steps_as_in_the_loop(inside: str, shape: str, decay: float) -> None:
    text = decaying(40, shape, inside, weights=f"float a = {{{decay}}}, float b = {{0.25}}")
    after, report = apply(text, [linear_recurrence], options=ANYWHERE)
    assert patches(report) == ["linear-recurrence"]
    before = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]>\n{text}')
    random = np.random.default_rng(3)
    theirs_session, *sessions = [ort_session(before), ort_session(after), ort_session(after, optimised=False)]
    for initial, one, other in product(CORNERS, repeat=3):
        zeros = random.choice([0.0, -0.0], (40, int(shape))) if random.random() < 0.5 else np.full((40, int(shape)), -0.0)
        xs = zeros.astype(np.float32)
        xs[random.integers(40), 0], xs[random.integers(40), 0] = one, other
        feeds = {"s": np.full(int(shape), initial, np.float32), "xs": xs}
        wanted = run_session(theirs_session, feeds)
        for session in sessions:
            for mine, theirs in zip(run_session(session, feeds), wanted, strict=True):
                same_class(mine, theirs)


def test_errors_grow_no_faster_than_in_the_loop() -> None:
    text = decaying(3000, "4", weights="float a = {0.999}")
    after, _ = apply(text, [linear_recurrence])
    before = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]>\n{text}')
    random = np.random.default_rng(5)
    feeds = {"s": random.standard_normal(4).astype(np.float32), "xs": random.standard_normal((3000, 4)).astype(np.float32)}
    exact, state = [], feeds["s"].astype(np.float64)
    for x in feeds["xs"]:
        state = np.float64(np.float32(0.999)) * state + x
        exact.append(state)
    mine, theirs = (np.abs(ort_run(model, feeds)[1] - exact).max() for model in (after, before))
    assert mine <= 2 * theirs


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (decaying(8, weights="float a = {1.01}"), "LINEAR-GROWTH"),
        (decaying(8, weights="float a = {-1.01}"), "LINEAR-GROWTH"),
        (decaying(8, weights="float a = {0}"), "LINEAR-CORNERS"),
        (decaying(8, weights="float[2] a = {0.5, -0.5}"), "LINEAR-CORNERS"),
        (
            decaying(8, inside="m = Mul (h, a) d = Sub (x, m) h1 = Neg (d) y = Identity (h1)", weights="float a = {-0.5}"),
            "LINEAR-CORNERS",
        ),
        (decaying(8, inside="m = Mul (h, a) k = Neg (m) d = Add (k, x) h1 = Neg (d) y = Identity (h1)"), "LINEAR-CORNERS"),
        (decaying(8, given="float[2] s, float[8,2] xs, float a", weights="float b = {1}"), "LINEAR-DECAY"),
        (decaying(8, inside="m = Mul (h, x) h1 = Add (m, x) y = Identity (h1)"), "LINEAR-DECAY"),
        (decaying("T"), "LINEAR-STEPS"),
        (decaying(1000, inputs="float[2] h, float[1] x", given="float[2] s, float[1000,1] xs"), "LINEAR-SHAPE"),
        (decaying(8), "COST-LINEAR"),
        (decaying(4096, "1024"), "COST-LINEAR"),
        (decaying(100000, "1000"), "MEMORY-BUDGET"),
    ],
)
def test_unsupported_or_slower_loops_stay(text: str, code: str) -> None:
    stays(linear_recurrence, text, code)


@pytest.mark.parametrize(
    "inside",
    [
        "m = Mul (h, a) k = Add (m, x) h1 = Tanh (k) y = Identity (h1)",
        "m = Mul (h, h) h1 = Add (m, x) y = Identity (h1)",
        "m = Div (a, h) h1 = Add (m, x) y = Identity (h1)",
        "m = Mul (h, a) h1 = Add (m, x) y = Exp (h1)",
        "h1 = Mul (h, a) y = Identity (x)",
    ],
)
def test_loops_that_are_not_linear_or_have_no_input_term_stay(inside: str) -> None:
    stays(linear_recurrence, decaying(1000, inside=inside))


def test_states_that_read_each_other_stay() -> None:
    text = decaying(
        1000,
        inside="m = Mul (h, a) h1 = Add (m, x) n = Mul (g, b) g1 = Add (n, h) y = Identity (g1)",
        inputs="float[2] h, float[2] g, float[2] x",
        outputs="float[2] h1, float[2] g1, float[2] y",
        operands="s, s, xs",
        results="float[2] z, float[2] w, float[1000,2] ys",
        outer="z, w, ys",
    )
    stays(linear_recurrence, text)


def test_a_loop_with_a_plan_stays() -> None:
    _, report = apply(decaying(1000), [linear_recurrence, native_loop])
    assert patches(report) == ["native-loop"]


def test_a_loop_that_has_no_plan_runs_in_blocks() -> None:
    _, report = apply(decaying(1000, "2", NO_PLAN), [linear_recurrence, native_loop])
    assert patches(report) == ["linear-recurrence"]


def test_integers_stay() -> None:
    stays(linear_recurrence, decaying(1000, kind="int64", weights="int64 a = {1}"))


@pytest.mark.parametrize("decay", ["0", "-0.5"])
def test_with_fast_math_signs_of_zeros_are_ignored(decay: str) -> None:
    options = Options(target=ANYWHERE.target, fast_math=True)
    becomes(linear_recurrence, decaying(30, weights=f"float a = {{{decay}}}"), options=options)


def test_a_cheap_loop_says_what_it_costs() -> None:
    _, report = apply(decaying(8), [linear_recurrence])
    assert reasons(report) == ["COST-LINEAR"]
    assert "8 steps with states of 8 bytes" in report.loops[0].reasons[0].detail
