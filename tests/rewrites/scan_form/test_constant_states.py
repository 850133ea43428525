"""States that depend on constants alone become constants that the Scan scans."""

import numpy as np
import pytest

import ortscan
from rewrites.scan_form import constant_states
from tests.rewrites.apply import read
from tests.rewrites.harness import becomes, scan, stays
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

WEIGHTS = "float[2] p0 = {1, 2}, float half = {0.5}, float[3,2] table = {1, 2, 3, 4, 5, 6}, int64 i0 = {0}, int64 one = {1}"


def model(inside: str, **changes: str) -> str:
    """A Scan with the state h, which reads the rows of xs, and the state p with a constant initial value."""
    return scan(
        inside,
        **{
            "inputs": "float[2] h, float[2] p, float[2] x",
            "outputs": "float[2] h1, float[2] p1, float[2] y",
            "operands": "s, p0, xs",
            "outer": "z, q, ys",
            "given": "float[2] s, float[3,2] xs, float[2] g",
            "results": "float[2] z, float[2] q, float[3,2] ys",
            "weights": WEIGHTS,
            **changes,
        },
    )


STEP = "p1 = Mul (p, half) a = Mul (h, p) h1 = Add (a, x) y = Add (h1, p1)"


def test_a_state_that_depends_on_constants_is_scanned() -> None:
    becomes(
        constant_states,
        model(STEP),
        """g (float[2] s, float[3,2] xs, float[2] g) => (float[2] z, float[2] q, float[3,2] ys)
        <float[3,2] rows = {1, 2, 0.5, 1, 0.25, 0.5}, float[2] last = {0.125, 0.25}, float half = {0.5}> {
            q = Identity (last)
            z, ys = Scan <num_scan_inputs = 2, body = b (h, x, p) => (h1, y) {
                p1 = Mul (p, half) a = Mul (h, p) h1 = Add (a, x) y = Add (h1, p1)
            }> (s, xs, rows) }""",
    )


@pytest.mark.parametrize(
    "inside",
    [
        "t = Tanh (p) p1 = Sub (p, t) h1 = Add (h, p) y = Mul (x, p1)",
        "w = ReduceSum <keepdims = 0> (p) c = Greater (w, half) p1 = If (c) <then_branch = t () => (float[2] u) { u = Mul (p, half) },"
        " else_branch = e () => (float[2] v) { v = Add (p, half) }> h1 = Add (h, p) y = Mul (x, p1)",
    ],
)
def test_any_operators_may_compute_it(inside: str) -> None:
    becomes(constant_states, model(inside))


SUMMED = "p1 = Mul (p, half) w = ReduceSum <keepdims = 0> (p) a = Mul (h, w) h1 = Add (a, x)"


def test_what_is_smaller_than_the_state_is_scanned_instead() -> None:
    becomes(
        constant_states,
        model(f"{SUMMED} y = Add (h1, w)", outer="z, q, ys"),
        """g (float[2] s, float[3,2] xs, float[2] g) => (float[2] z, float[2] q, float[3,2] ys)
        <float[3] rows = {3, 1.5, 0.75}, float[2] last = {0.125, 0.25}> {
            q = Identity (last)
            z, ys = Scan <num_scan_inputs = 2, body = b (h, x, w) => (h1, y) {
                a = Mul (h, w) h1 = Add (a, x) y = Add (h1, w)
            }> (s, xs, rows) }""",
    )


@pytest.mark.parametrize("inside", [f"{SUMMED} y = Add (h1, p)", f"{SUMMED} y = Identity (p1)"])
def test_a_state_that_a_result_reads_is_scanned_itself(inside: str) -> None:
    after, _ = becomes(constant_states, model(inside))
    assert [
        init.dims for init in after.graph.initializer if len(init.dims) == 2 and init.dims[0] == 3 and init.name != "table"
    ] == [[3, 2]]


@pytest.mark.parametrize("direction", ["0, 0, 0", "0, 1, 0"])
def test_rows_of_constants_may_be_read(direction: str) -> None:
    becomes(
        constant_states,
        model(
            "p1 = Mul (p, w) h1 = Add (h, p) y = Mul (x, p1)",
            inputs="float[2] h, float[2] p, float[2] x, float[2] w",
            operands="s, p0, xs, table",
            attributes=f"num_scan_inputs = 2, scan_input_directions = [{direction[3:]}]",
        ),
    )


def test_states_may_depend_on_each_other() -> None:
    becomes(
        constant_states,
        model(
            "p1 = Mul (p, half) k1 = Add (k, p) h1 = Add (h, k) y = Mul (x, k1)",
            inputs="float[2] h, float[2] p, float[2] k, float[2] x",
            outputs="float[2] h1, float[2] p1, float[2] k1, float[2] y",
            operands="s, p0, p0, xs",
            outer="z, q, r, ys",
            results="float[2] z, float[2] r, float[3,2] ys",
        ),
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"inside": "p1 = Mul (p, x) a = Mul (h, p) h1 = Add (a, x) y = Add (h1, p1)"},
        {"inside": "p1 = Mul (p, h) a = Mul (h, p) h1 = Add (a, x) y = Add (h1, p1)"},
        {"inside": "p1 = Mul (p, g) a = Mul (h, p) h1 = Add (a, x) y = Add (h1, p1)"},
        {"inside": "n = RandomNormalLike (p) p1 = Mul (p, n) a = Mul (h, p) h1 = Add (a, x) y = Add (h1, p1)"},
        {"inside": STEP, "operands": "s, g, xs"},
        {
            "inside": "u, i, at = Unique (w) n = Cast <to = 1> (at) p1 = Add (p, n) h1 = Add (h, p) y = Mul (x, p1)",
            "inputs": "float[2] h, float[2] p, float[2] x, string[2] w",
            "operands": "s, p0, xs, words",
            "weights": 'float[2] p0 = {1, 2}, string[3,2] words = {"1", "2", "2", "1", "1", "1"}',
            "attributes": "num_scan_inputs = 2",
        },
    ],
    ids=["row", "other state", "outer value", "random", "initial value", "strings"],
)
def test_other_states_stay(changes: dict[str, str]) -> None:
    stays(constant_states, model(**changes))


@pytest.mark.parametrize(
    ("steps", "condition"), [("T", "number of steps, T, is fixed (--fix-dim)"), ("?", "number of steps is known")]
)
def test_an_unknown_number_of_steps_is_the_reason(steps: str, condition: str) -> None:
    free = {"given": f"float[2] s, float[{steps},2] xs, float[2] g", "results": f"float[2] z, float[2] q, float[{steps},2] ys"}
    stays(constant_states, model(STEP, **free), "CONSTANT-STATES", detail=f"'p' can be computed in advance if the {condition}")


def test_halves_are_computed_in_advance_too() -> None:
    text = model("p1 = Tanh (p) w = ReduceSum <keepdims = 0> (p) h1 = Add (h, w) y = Mul (x, w)", weights="float[2] p0 = {1, 2}")
    after, _ = becomes(constant_states, text.replace("float", "float16"))
    assert [list(init.dims) for init in after.graph.initializer if init.name != "p0"] == [[3], [2]]


CHAIN = " ".join(f"t{i + 1} = Tanh (t{i})" for i in range(8)).replace("(t0)", "(p)")


@pytest.mark.parametrize(("steps", "inside"), [(200_000, STEP), (20_000, f"{CHAIN} {STEP.replace('(p, half)', '(t8, half)')}")])
def test_many_rows_and_many_operators_stay_in_the_loop(steps: int, inside: str) -> None:
    sizes = {"given": f"float[2] s, float[{steps},2] xs, float[2] g", "results": f"float[2] z, float[2] q, float[{steps},2] ys"}
    stays(constant_states, model(inside, **sizes), "CONSTANT-STATES")


def test_the_covariance_of_a_kalman_filter_leaves_the_loop() -> None:
    text = model(
        "v = Add (p, half) u = Add (v, one_f) k = Div (v, u) d = Sub (x, h) e = Mul (k, d) h1 = Add (h, e) o = Sub (one_f, k)"
        " p1 = Mul (o, v) y = Identity (h1)",
        weights=WEIGHTS + ", float one_f = {1}",
    )
    before = read(text, 18)
    after = ortscan.optimize(before, target="onnx")
    body_operators = {node.op_type for outer in after.graph.node for each in outer.attribute for node in each.g.node}
    assert "Div" not in body_operators
    feeds = {"s": np.ones(2, np.float32), "xs": np.arange(6, dtype=np.float32).reshape(3, 2), "g": np.ones(2, np.float32)}
    assert_same_numbers(ort_run(after, feeds), ort_run(before, feeds))
