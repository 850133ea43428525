"""States that are constant linear combinations of each other: their numbers, corner values, and loops that stay."""

import math
from itertools import product

import numpy as np
import onnx
import pytest

from rewrites.base.abilities import Abilities
from rewrites.fission import loop_fission
from rewrites.graph.context import Options
from rewrites.native import native_loop
from rewrites.recurrences.linear import constant_filter, linear_recurrence
from tests.rewrites.apply import apply, patches
from tests.rewrites.harness import becomes, scan, stays
from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run, ort_session, run_session
from tests.support.text import model_from_text

BIQUAD = """p = Mul (b0, x) y = Add (p, s1) q = Mul (b1, x) r = Mul (a1, y) d = Sub (q, r) n1 = Add (d, s2)
    u = Mul (b2, x) w = Mul (a2, y) n2 = Sub (u, w)"""
DIRECT = """c = Mul (a1, s1) d = Mul (a2, s2) e = Sub (x, c) n1 = Sub (e, d) n2 = Identity (s1)
    f = Mul (b0, n1) g = Mul (b1, s1) h = Mul (b2, s2) i = Add (f, g) y = Add (i, h)"""
LOW_PASS = {"b0": 0.1, "b1": 0.2, "b2": 0.1, "a1": -1.6, "a2": 0.7}


def second_order(
    steps: int | str, inside: str = BIQUAD, shape: str = "", kind: str = "float", constant: bool = False, **more: str
) -> str:
    """Return a Scan over two coupled states of `shape` in `steps` steps. If `constant`, they start at 0."""
    one, stack = (f"{kind}[{shape}]", f"{kind}[{steps},{shape}]") if shape else (kind, f"{kind}[{steps}]")
    numbers = LOW_PASS | {name: float(more.pop(name)) for name in LOW_PASS if name in more}
    zero = f", {kind} z1 = {{0}}, {kind} z2 = {{0}}" if constant else ""
    return scan(
        inside,
        **{
            "inputs": f"{one} s1, {one} s2, {one} x",
            "outputs": f"{one} n1, {one} n2, {one} y",
            "given": f"{stack} xs" if constant else f"{one} z1, {one} z2, {stack} xs",
            "operands": "z1, z2, xs",
            "results": f"{stack} ys" if constant else f"{one} f1, {one} f2, {stack} ys",
            "outer": "f1, f2, ys",
            "weights": ", ".join(f"{kind} {name} = {{{number}}}" for name, number in numbers.items()) + zero,
        }
        | more,
    )


WAYS = {
    "transposed": second_order(300),
    "from zeros": second_order(300, constant=True),
    "direct": second_order(300, DIRECT),
    "in one block": second_order(48, shape="2"),
    "a block and one step": second_order(97),
    "channels": second_order(300, shape="2,3", kind="double"),
    "a free batch": second_order(1000, shape="B", kind="double"),
    "in three levels": second_order(5000, kind="double"),
    "backwards": second_order(131, attributes="num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1]"),
    "backwards and written forwards": second_order(131, attributes="num_scan_inputs = 1, scan_input_directions = [1]"),
    "growing": second_order(60, a1="-1.9", a2="0.85"),
    "with what is always added": second_order(300, BIQUAD.replace("x", "v") + " v0 = Neg (b1)").replace(
        "p = ", "v = Add (x, b2) p = "
    ),
    "an average that changes its sign": scan(
        "m = Mul (h, a) h1 = Add (m, x) y = Sub (h1, x)",
        given="float[2] s, float[200,2] xs",
        results="float[2] z, float[200,2] ys",
        weights="float a = {-0.5}",
    ),
    "a sum of two that come in": second_order(
        200,
        "x = Sub (v, u) " + BIQUAD.replace("u = Mul (b2, x) w", "t = Mul (b2, x) w").replace("Sub (u, w)", "Sub (t, w)"),
        inputs="float s1, float s2, float v, float u",
        attributes="num_scan_inputs = 2",
        given="float z1, float z2, float[200] vs, float[200] us",
        operands="z1, z2, vs, us",
    ),
    "a moving sum of three": scan(
        "p = Add (s1, s2) y = Add (p, x) n1 = Identity (x) n2 = Identity (s1)",
        inputs="float[2] s1, float[2] s2, float[2] x",
        outputs="float[2] n1, float[2] n2, float[2] y",
        operands="s, s, xs",
        given="float[2] s, float[200,2] xs",
        results="float[2] z, float[2] w, float[200,2] ys",
        outer="z, w, ys",
    ),
    "two inputs and two outputs": scan(
        "m = Mul (h, a) k = Mul (g, b) d = Sub (m, k) h1 = Add (d, x) l = Mul (g, a) n = Mul (h, b) e = Add (l, n) g1 = Add (e, u)"
        " y = Identity (h1) v = Sub (g1, x)",
        inputs="float[2] h, float[2] g, float[2] x, float[2] u",
        outputs="float[2] h1, float[2] g1, float[2] y, float[2] v",
        attributes="num_scan_inputs = 2",
        operands="s, s, xs, us",
        given="float[2] s, float[200,2] xs, float[200,2] us",
        results="float[2] z, float[2] w, float[200,2] ys, float[200,2] vs",
        outer="z, w, ys, vs",
        weights="float a = {0.6}, float b = {0.7}",
    ),
}


def estimated(inside: str, size: str, shape: str, weights: str, kind: str = "double") -> str:
    """Return a filter with states of `size`, which `inside` corrects by a measurement of `shape`."""
    return scan(
        inside,
        inputs=f"{kind}[{size}] s, {kind}[{shape}] z",
        outputs=f"{kind}[{size}] n, {kind}[{size}] y",
        given=f"{kind}[{size}] s0, {kind}[200,{shape}] zs",
        operands="s0, zs",
        results=f"{kind}[{size}] f, {kind}[200,{size}] ys",
        outer="f, ys",
        weights=weights.replace("float", kind),
    )


MATRICES = "float[3,3] A = {0.9,0.1,0,-0.1,0.9,0.1,0,0,0.8}, float[2,3] C = {1,0,0,0,1,0}, float[3,2] K = {0.3,0,0,0.4,0.1,0.1}"
TURNED = "float[3,3] A = {0.9,-0.1,0,0.1,0.9,0,0,0.1,0.8}, float[3,2] C = {1,0,0,1,0,0}, float[2,3] K = {0.3,0,0.1,0,0.4,0.1}"
CORRECTED = "p = MatMul (A, s) c = MatMul (C, p) e = Sub (z, c) k = MatMul (K, e) n = Add (p, k) y = Identity (n)"
DENSE = {
    "vectors": estimated(CORRECTED, "3", "2", MATRICES),
    "in float": estimated(CORRECTED, "3", "2", MATRICES, "float"),
    "columns": estimated(CORRECTED, "3,1", "2,1", MATRICES),
    "rows": estimated(
        "p = MatMul (s, A) c = MatMul (p, C) e = Sub (z, c) k = MatMul (e, K) n = Add (p, k) y = Identity (n)", "1,3", "1,2", TURNED
    ),
    "rows by Gemm": estimated(
        "p = Gemm <transB = 1> (s, A) c = Gemm <transB = 1> (p, C) e = Sub (z, c) n = Gemm <transB = 1, alpha = 0.5> (e, K, p)"
        " y = Identity (n)",
        "1,3",
        "1,2",
        MATRICES,
    ),
    "a matrix of states": estimated(
        "p = MatMul (A, s) q = Mul (p, h) n = Add (q, z) y = Identity (n)", "3,2", "3,1", MATRICES + ", float[2] h = {0.5, -0.5}"
    ),
    "a window of what came": estimated(
        "d = Slice (s, one, four, zero) n = Concat <axis = 0> (d, z) t = ReduceSum <keepdims = 1> (n, zero) y = Mul (t, ones)",
        "4",
        "1",
        "int64[1] one = {1}, int64[1] four = {4}, int64[1] zero = {0}, float[4] ones = {1,1,1,1}",
    ),
    "channels with numbers of their own": second_order(
        300,
        shape="2",
        kind="double",
        weights=", ".join(f"double[2] {name} = {{{number}, {number / 2}}}" for name, number in LOW_PASS.items()),
    ),
    "what is added to each": estimated(
        "p = MatMul (A, s) q = Add (p, b) n = Sub (q, z) y = Identity (n)", "3", "1", MATRICES + ", float[3] b = {1,2,3}"
    ),
}


def rows_of(kind: str, name: str, shape: tuple[int, ...], middle: float = 0) -> str:
    """Return an initializer with different rows, whose numbers differ from ``middle`` by at most 0.1."""
    numbers = ", ".join(f"{middle + 0.1 * math.sin(index):.4f}" for index in range(math.prod(shape)))
    return f"{kind}[{','.join(map(str, shape))}] {name} = {{{numbers}}}"


def gained(
    inside: str = CORRECTED, rows: tuple[int, ...] = (200, 3, 2), kind: str = "double", constant: bool = True, **more: str
) -> str:
    """Return the filter ``estimated``, whose gain K is the row of each step of a constant, or else of an input."""
    row, weights = ",".join(map(str, rows[1:])), MATRICES.rpartition(", ")[0].replace("float", kind)
    given = f"{kind}[3] s0, {kind}[{rows[0]},2] zs" + ("" if constant else f", {kind}[{rows[0]},{row}] Ks")
    return scan(
        inside,
        **{
            "inputs": f"{kind}[3] s, {kind}[2] z, {kind}[{row}] K",
            "outputs": f"{kind}[3] n, {kind}[3] y",
            "attributes": "num_scan_inputs = 2",
            "given": given,
            "operands": "s0, zs, Ks",
            "results": f"{kind}[3] f, {kind}[{rows[0]},3] ys",
            "outer": "f, ys",
            "weights": f"{weights}, {rows_of(kind, 'Ks', rows)}" if constant else weights,
        }
        | more,
    )


def in_rows(steps: int, inside: str, shape: str) -> str:
    """Return a Scan over two states of ``shape``, with numbers a and b that are the rows of each step of two constants."""
    return second_order(
        steps,
        inside,
        shape,
        kind="double",
        inputs=f"double[{shape}] s1, double[{shape}] s2, double[{shape}] x, double a, double b",
        attributes="num_scan_inputs = 3",
        operands="z1, z2, xs, as, bs",
        weights=f"{rows_of('double', 'as', (steps,), 0.5)}, {rows_of('double', 'bs', (steps,), 0.5)}, double c = {{3}}",
    )


ALPHA_BETA = "p = Add (s1, s2) e = Sub (x, p) g = Div (e, c) n1 = Add (p, g) k = Mul (e, b) d = Mul (s2, a) n2 = Add (d, k) y = Identity (n1)"
VARYING = {
    "gains": gained(),
    "gains in float": gained(rows=(50, 3, 2), kind="float"),
    "gains in one block": gained(rows=(20, 3, 2)),
    "gains of 201 steps": gained(rows=(201, 3, 2)),
    "gains backwards": gained(attributes="num_scan_inputs = 2, scan_input_directions = [1, 1], scan_output_directions = [1]"),
    "gains in the other direction": gained(attributes="num_scan_inputs = 2, scan_input_directions = [0, 1]"),
    "gains that are added and moved": gained(
        "Kt = Transpose (K) Kn = Neg (Kt) Km = Add (Kn, Kt) Kl = Sub (Km, Kn) "
        + CORRECTED.replace("MatMul (K, e)", "MatMul (e, Kl)")
    ),
    "rows that are added": gained(
        "p = MatMul (A, s) c = MatMul (C, p) e = Sub (z, c) k = MatMul (K, e) q = Add (p, k) j = ReduceSum <keepdims = 0> (K, one)"
        " n = Add (q, j) y = Sub (n, j)",
        own="int64[1] one = {1}",
    ),
    "rows of numbers": in_rows(100, ALPHA_BETA, "3"),
    "divisors": in_rows(100, ALPHA_BETA.replace("k = Mul (e, b)", "o = Add (b, c) q = Mul (e, b) k = Div (q, o)"), "2,2"),
}


@pytest.mark.parametrize("way", [*WAYS, *DENSE, *VARYING])
def test_the_results_are_those_of_the_loop(way: str) -> None:
    after, _ = becomes(constant_filter, (WAYS | DENSE | VARYING)[way], B=3)
    assert [node.op_type for node in after.graph.node].count("If") == 1
    assert all(node.op_type != "Scan" for node in after.graph.node)


CORNERS = (np.nan, np.inf, -np.inf, 3e38, -0.0, 0.0)


@pytest.mark.parametrize("inside", [BIQUAD, DIRECT])
@pytest.mark.parametrize("signs", [{}, {"b2": "-0.1", "b1": "-0.2"}, {"a1": "1.6"}])
def test_infinities_nan_and_zeros_equal_those_of_the_loop(inside: str, signs: dict[str, str]) -> None:
    text = second_order(70, inside, "2", results="float[70,2] ys", **signs)
    after, report = apply(text, [constant_filter])
    if patches(report) != ["constant-filter"]:
        assert [reason.code for one in report.loops for reason in one.reasons] == ["LINEAR-CORNERS"]
        return
    before = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]>\n{text}')
    random = np.random.default_rng(3)
    sessions = [ort_session(model) for model in (after, before)]
    for initial, one, other in product(CORNERS, repeat=3):
        xs = random.choice([0.0, -0.0, 1.0], (70, 2), p=[0.9, 0.05, 0.05]).astype(np.float32)
        xs[random.integers(70), 0], xs[random.integers(70), 1] = one, other
        feeds = {"z1": np.full(2, initial, np.float32), "z2": np.zeros(2, np.float32), "xs": xs}
        (mine,), (theirs,) = (run_session(session, feeds) for session in sessions)
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(np.signbit(mine[theirs == 0]), np.signbit(theirs[theirs == 0]))
        np.testing.assert_array_equal(np.isnan(mine), np.isnan(theirs))


def test_errors_are_no_larger_than_four_times_those_of_the_loop() -> None:
    text = second_order(1000, a1="-1.96", a2="0.965", b0="0.01", b1="0.02", b2="0.01")
    after, _ = apply(text, [constant_filter])
    before = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]>\n{text}')
    random = np.random.default_rng(5)
    feeds = {"z1": np.array(1, np.float32), "z2": np.array(-1, np.float32), "xs": random.standard_normal(1000).astype(np.float32)}
    double = {name: value.astype(np.float64) for name, value in feeds.items()}
    exact = run_model(
        onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]>\n{text.replace("float", "double")}'), double
    )
    mine, theirs = (np.abs(ort_run(model, feeds)[2] - exact[2]).max() for model in (after, before))
    assert mine <= 4 * theirs


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (second_order("T", shape="B"), "LINEAR-STEPS"),
        (second_order(300, a1="-2.5"), "LINEAR-GROWTH"),
        (second_order(2), "COST-LINEAR"),
        (second_order(4096, shape="1024"), "COST-LINEAR"),
        (
            second_order(
                300, shape="B", inputs="float[B] s1, float[B] s2, float[1] x", given="float[B] z1, float[B] z2, float[300,1] xs"
            ),
            "LINEAR-SHAPE",
        ),
        (second_order(300000, shape="400"), "MEMORY-BUDGET"),
        (
            scan(
                "k = Mul (s, w) n = Add (k, z) m = ReduceSum <keepdims = 1> (n, first) y = Add (n, m)",
                inputs="float[32] s, float[32] z, float[32] w",
                outputs="float[32] n, float[32] y",
                attributes="num_scan_inputs = 2",
                given="float[32] s0, float[200,32] zs",
                operands="s0, zs, ws",
                results="float[32] f, float[200,32] ys",
                outer="f, ys",
                weights=rows_of("float", "ws", (200, 32)) + ", int64[1] first = {0}",
            ),
            "MEMORY-BUDGET",
        ),
        (second_order(300, "n1 = Neg (x) n2 = Identity (s1) y = Identity (s2)"), "LINEAR-CORNERS"),
    ],
)
def test_unsupported_or_slower_loops_stay(text: str, code: str) -> None:
    stays(constant_filter, text, code)


def test_a_filter_of_halves_stays() -> None:
    text = scan("m = Mul (h, a) h1 = Sub (x, m) y = Add (h1, x)", given="float[2] s, float[200,2] xs", weights="float a = {14336}")
    text = text.replace("float[3,2]", "float[200,2]").replace("float", "float16")  # 14336 are the bits of 0.5
    stays(constant_filter, text, "LINEAR-TYPE", detail="'h' is a filter in float16")


def test_the_reason_for_unknown_steps_says_how_many_would_be_faster() -> None:
    stays(constant_filter, second_order("T", shape="B"), "LINEAR-STEPS", detail="for 16 or more")


def test_stacks_over_the_memory_budget_keep_the_loop() -> None:
    large = BIQUAD.replace("Mul (b0, x)", "Mul (b0, v)").replace("Mul (b1, x)", "Mul (b1, v)").replace("Mul (b2, x)", "Mul (b2, v)")
    text = second_order(
        300,
        "w0 = Expand (x, size) v = ReduceMax <keepdims = 0> (w0) " + large,
        weights=", ".join(f"float {name} = {{{number}}}" for name, number in LOW_PASS.items()) + ", int64[2] size = {1000, 1000}",
    )
    stays(constant_filter, text, "MEMORY-BUDGET")


@pytest.mark.parametrize(
    "change",
    [
        ("y = Add (p, s1)", "k = Add (p, s1) y = Tanh (k)"),
        ("r = Mul (a1, y)", "r = Mul (x, y)"),
        ("w = Mul (a2, y)", "w = Mul (y, y)"),
        ("q = Mul (b1, x)", "q = Div (b1, s2)"),
    ],
)
def test_loops_that_are_not_linear_stay(change: tuple[str, str]) -> None:
    stays(constant_filter, second_order(300, BIQUAD.replace(*change)))


@pytest.mark.parametrize(
    "text",
    [
        gained(constant=False),
        gained(
            CORRECTED.replace("MatMul (K, e)", "MatMul (L, e)").replace(
                "p =", "ss = Tanh (s) t = Slice (ss, zero, two) L = Mul (K, t) p ="
            )
        ).replace("<double[3,3]", "<int64[1] zero = {0}, int64[1] two = {2}, double[3,3]"),
        gained(CORRECTED.replace("y = Identity (n)", "y = Mul (n, n)")),
        in_rows(100, ALPHA_BETA.replace("Mul (e, b)", "Mul (e, e)"), "3"),
    ],
    ids=["gains are an input", "gains depend on the state", "square", "square of numbers"],
)
def test_loops_that_are_not_linear_by_rows_of_constants_stay(text: str) -> None:
    stays(constant_filter, text)


def test_gains_keep_infinities_nan_and_zeros() -> None:
    text = gained(rows=(40, 3, 2), kind="float")
    after, _ = apply(text, [constant_filter])
    sessions = [ort_session(model) for model in (after, model_from_text(text, 18))]
    for initial, measured in product((*CORNERS, 1.0), repeat=2):
        feeds = {"s0": np.full(3, initial, np.float32), "zs": np.ones((40, 2), np.float32)}
        feeds["zs"][17, 1] = measured
        mine, theirs = (run_session(session, feeds) for session in sessions)
        for ours, loops in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(ours, loops, rtol=1e-4, atol=1e-5)


def test_an_output_of_another_type_leaves_the_loop_first() -> None:
    more = {"outputs": "float n1, float n2, float y, bool o", "results": "float[300] ys, bool[300] os", "outer": "f1, f2, ys, os"}
    text = second_order(300, f"{BIQUAD} o = Less (x, b1)", **more)
    stays(constant_filter, text)
    draw = np.random.default_rng(0)
    feeds = {"z1": np.array(1, np.float32), "z2": np.array(2, np.float32), "xs": draw.standard_normal(300).astype(np.float32)}
    after, report = apply(text, [constant_filter, loop_fission])
    assert patches(report) == ["loop-fission", "constant-filter"]
    for mine, loops in zip(ort_run(after, feeds), ort_run(model_from_text(text, 18), feeds), strict=True):
        np.testing.assert_allclose(mine, loops, rtol=1e-4, atol=1e-4)


def decaying(steps: int | str, width: int, decay: float = 0.5) -> str:
    return scan(
        "m = Mul (h, a) h1 = Add (m, x) y = Identity (h1)",
        given=f"float[{width}] s, float[{steps},{width}] xs",
        results=f"float[{width}] z, float[{steps},{width}] ys",
        weights=f"float a = {{{decay}}}",
        inputs=f"float[{width}] h, float[{width}] x",
        outputs=f"float[{width}] h1, float[{width}] y",
    )


def test_a_single_decaying_state_has_no_loop_in_the_fallback_either() -> None:
    after, report = apply(decaying(200, 2), [constant_filter, linear_recurrence])
    assert patches(report) == ["constant-filter", "linear-recurrence"]
    assert [one.fate for one in report.loops] == ["removed"]
    rng = np.random.default_rng(0)
    feeds = {"s": np.ones(2, np.float32), "xs": rng.normal(size=(200, 2)).astype(np.float32)}
    for spoiled in (None, 100):
        if spoiled is not None:
            feeds["xs"][spoiled, 1] = np.nan
        assert_same_numbers(ort_run(after, feeds), ort_run(model_from_text(decaying(200, 2), 18), feeds))


@pytest.mark.parametrize(("steps", "width", "decay", "taken"), [(4096, 64, 0.5, ["linear-recurrence"]), (200, 2, 1, [])])
def test_large_stacks_and_sums_are_left_to_the_rules_that_need_no_if(
    steps: int, width: int, decay: float, taken: list[str]
) -> None:
    _, report = apply(decaying(steps, width, decay), [constant_filter, *([linear_recurrence] if taken else [])])
    assert patches(report) == taken


def test_a_fallback_loop_is_not_rewritten_again() -> None:
    after, report = apply(second_order(300), [constant_filter])
    assert [one.fate for one in report.loops] == ["rewritten"]
    again, report = apply(onnx.printer.to_text(after.graph), [constant_filter])
    assert patches(report) == []
    assert [node.op_type for node in again.graph.node] == [node.op_type for node in after.graph.node]


def test_a_loop_with_a_plan_stays() -> None:
    _, report = apply(second_order(300), [constant_filter, native_loop])
    assert patches(report) == ["native-loop"]


def test_a_target_without_if_has_no_fallback() -> None:
    target = Options(target=Abilities("no branches", frozenset({"Scan"})))
    _, report = apply(second_order(300), [constant_filter], options=target)
    assert [reason.code for one in report.loops for reason in one.reasons] == ["LINEAR-CORNERS"]


def test_a_state_that_changes_its_number_of_elements_stays() -> None:
    text = scan(
        "a = Mul (h, c) h1 = Add (a, x) g1 = Identity (h1) y = Identity (h1)",
        inputs="float[2] h, float[3] g, float[2] x",
        outputs="float[2] h1, float[2] g1, float[2] y",
        given="float[2] s, float[3] t, float[64,2] xs",
        operands="s, t, xs",
        results="float[2] z, float[2] v, float[64,2] ys",
        outer="z, v, ys",
        weights="float[2] c = {0.5, 0.25}",
    )
    stays(constant_filter, text, check=False)
