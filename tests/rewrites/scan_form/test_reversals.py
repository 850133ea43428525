"""Reversals around a Scan: every spelling, on both sides, and all that only looks like one."""

import numpy as np
import onnx
import pytest

from rewrites.graph.context import Options
from rewrites.loop_form import loop_to_scan
from rewrites.recurrences.cells import recurrent_cell
from rewrites.scan_form import reversals
from tests.rewrites.apply import apply, read
from tests.rewrites.harness import becomes, scan, stays
from tests.support.runtime import ort_run

WEIGHTS = "int64[1] last = {-1}, int64[1] zero = {0}, int64[1] one = {1}, int64 n0 = {0}, int64 n1 = {1}, int64 m1 = {-1}, "
WEIGHTS += "int64[1] far = {-9223372036854775808}, int64[1] max = {9223372036854775807}, int64[3] down = {2, 1, 0}, "
WEIGHTS += "int64[3] negative = {-1, -2, -3}, int64[2] threes = {3, 3}, int64[1] two = {2}, int64[3] other = {2, 0, 1}, "
WEIGHTS += "int64[2] mixed = {3, 2}, int64[1] close = {-3}, int64[1] before = {-4}"

SIZE = "sh{n} = Shape ({x}) t1{n} = Gather (sh{n}, zero) t{n} = Squeeze (t1{n}, zero) e{n} = Sub (t{n}, n1)"
ANY_LENGTH = {
    "Slice": "{y} = Slice ({x}, last, far, zero, last)",
    "Slice from the largest number": "{y} = Slice ({x}, max, far, zero, last)",
    "Slice from the computed end": f"{SIZE} e1{{n}} = Unsqueeze (e{{n}}, zero) {{y}} = Slice ({{x}}, e1{{n}}, far, zero, last)",
    "Gather of T - 1 - Range": f"{SIZE} r{{n}} = Range (n0, t{{n}}, n1) i{{n}} = Sub (e{{n}}, r{{n}}) {{y}} = Gather ({{x}}, i{{n}})",
    "Gather of a falling Range": f"{SIZE} i{{n}} = Range (e{{n}}, m1, m1) {{y}} = Gather <axis = -2> ({{x}}, i{{n}})",
    "Gather of -Range + T - 1": f"""{SIZE} r{{n}} = Range (n0, t{{n}}, n1) s{{n}} = Neg (r{{n}}) i{{n}} = Add (s{{n}}, e{{n}})
        {{y}} = Gather ({{x}}, i{{n}})""",
    "ReverseSequence of T, expanded": """sh{n} = Shape ({x}) b{n} = Gather (sh{n}, one) t1{n} = Gather (sh{n}, zero)
        l{n} = Expand (t1{n}, b{n}) {y} = ReverseSequence <batch_axis = 1, time_axis = 0> ({x}, l{n})""",
}
THREE_STEPS = {
    "Slice from the last index": "{y} = Slice ({x}, two, far, zero, last)",
    "Slice to just before the first": "{y} = Slice ({x}, last, before, zero, last)",
    "Gather of numbers": "{y} = Gather ({x}, down)",
    "Gather of negative numbers": "{y} = Gather ({x}, negative)",
    "ReverseSequence of numbers": "{y} = ReverseSequence <batch_axis = 1, time_axis = 0> ({x}, threes)",
}
NO_REVERSALS = {
    "a Slice that starts before the end": "r = Slice (xs, one, far, zero, last)",
    "a Slice that stops before the start": "r = Slice (xs, last, close, zero, last)",
    "every second row": "minus2 = Constant <value_ints = [-2]> () r = Slice (xs, last, far, zero, minus2)",
    "rows in another order": "r = Gather (xs, other)",
    "rows of their own lengths": "r = ReverseSequence <batch_axis = 1, time_axis = 0> (xs, mixed)",
    "lengths that come with the data": "r = ReverseSequence <batch_axis = 1, time_axis = 0> (xs, lens)",
    "the other axis": "r = Slice (xs, last, far, one, last)",
}


def around(spelling: str, steps: str = "T") -> str:
    """A Scan between two reversals."""
    enter, leave = spelling.format(y="r", x="xs", n="a"), spelling.format(y="zs", x="ys", n="b")
    return scan(
        "h1 = Add (h, x) y = Tanh (h1)",
        given=f"float[2] s, float[{steps},2] xs",
        results=f"float[2] z, float[{steps},2] zs",
        operands="s, r",
        before=enter,
        after=leave,
        weights=WEIGHTS,
    )


def directions(model: onnx.ModelProto) -> tuple[list[int], list[int]]:
    (node,) = [node for node in model.graph.node if node.op_type == "Scan"]
    found = {attribute.name: list(attribute.ints) for attribute in node.attribute}
    return found.get("scan_input_directions", []), found.get("scan_output_directions", [])


def turns(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node if node.op_type in ("Slice", "ReverseSequence", "Range")]


@pytest.mark.parametrize("spelling", ANY_LENGTH)
@pytest.mark.parametrize("steps", ["3", "T"])
def test_reversals_on_both_sides_become_directions(spelling: str, steps: str) -> None:
    text = around(ANY_LENGTH[spelling], steps)
    after, _ = becomes(reversals, text, T=5, on_ort="falling" not in spelling)  # onnxruntime optimises that one wrongly
    assert directions(after) == ([1], [1])
    assert turns(after) == []


@pytest.mark.parametrize("spelling", THREE_STEPS)
def test_reversals_by_numbers_do_where_the_length_is_known(spelling: str) -> None:
    after, _ = becomes(reversals, around(THREE_STEPS[spelling], "3"))
    assert directions(after) == ([1], [1])
    after, _ = apply(around(THREE_STEPS[spelling], "T"), [reversals], check=False)
    assert directions(after)[0] == []


@pytest.mark.parametrize("spelling", NO_REVERSALS)
def test_what_only_looks_like_a_reversal_stays(spelling: str) -> None:
    text = scan(
        "h1 = Add (h, x) y = Tanh (h1)",
        given="float[2] s, float[3,2] xs, int64[2] lens",
        operands="s, r",
        before=NO_REVERSALS[spelling],
        weights=WEIGHTS,
        outputs="float[2] h1, float[2] y",
        results="float[2] z, float[n,2] ys",
    )
    stays(reversals, text, check=False)


def test_a_length_of_another_tensor_is_no_proof() -> None:
    before = "sh = Shape (s2) t1 = Gather (sh, zero) b = Gather (sh, one) l = Expand (t1, b) "
    before += "r = ReverseSequence <batch_axis = 1, time_axis = 0> (xs, l)"
    text = scan(
        "h1 = Add (h, x) y = Tanh (h1)",
        given="float[2] s, float[S,2] s2, float[T,2] xs",
        operands="s, r",
        results="float[2] z, float[T,2] ys",
        before=before,
        weights=WEIGHTS,
    )
    stays(reversals, text)
    becomes(reversals, text.replace("float[S,2]", "float[T,2]"), T=3)


def test_a_reversal_of_sizes_inside_a_loop_is_left_where_they_may_change() -> None:
    inner = f"{ANY_LENGTH['Gather of a falling Range'].format(x='part', y='r', n='')} "
    inner += """a, bs = Scan <num_scan_inputs = 1, body = b2 (float k, float v) => (float k1, float w) { k1 = Add (k, v) w = Exp (v) }>
        (zero_f, r) h1 = Add (h, a)"""
    inner = inner.replace("axis = -2", "axis = 0")
    text = scan(
        f"part = Slice (base, zero, n, zero) {inner} y = Identity (h1)",
        inputs="float h, int64[1] n",
        outputs="float h1, float y",
        given="float s, int64[3,1] ns, float[4] base",
        operands="s, ns",
        results="float z, float[3] ys",
        weights=WEIGHTS + ", float zero_f = {0}",
    )
    stays(reversals, text)


BETWEEN = [
    ("t = Transpose <perm = [1, 0]> (r)", "u = Transpose <perm = [1, 0]> (ys)"),
    ("i = Identity (r) t0 = Transpose (i) t = Identity (t0)", "u0 = Transpose (ys) u = Identity (u0)"),
    (
        "r0 = Unsqueeze (r, zero) t0 = Transpose <perm = [2, 0, 1]> (r0) t = Squeeze (t0, one)",
        "u0 = Unsqueeze (ys, one) u1 = Transpose <perm = [1, 2, 0]> (u0) u = Squeeze (u1, zero)",
    ),
    (
        "r0 = Unsqueeze (r, last) t0 = Transpose <perm = [1, 0, 2]> (r0) t = Squeeze (t0, last)",
        "u0 = Unsqueeze (ys, last) u1 = Transpose <perm = [1, 0, 2]> (u0) u = Squeeze (u1, last)",
    ),
]


@pytest.mark.parametrize(("enter", "leave"), BETWEEN)
def test_moves_of_axes_may_be_between(enter: str, leave: str) -> None:
    text = scan(
        "h1 = Add (h, x) y = Tanh (h1)",
        given="float[2] s, float[2,T] xs",
        before=f"r = Slice (xs, last, far, one, last) {enter}",
        operands="s, t",
        after=f"{leave} us = Shape (u) v = Slice (u, last, far, one, last)",
        results="float[2] z, float[2,T] v, int64[2] us",
        weights=WEIGHTS,
    )
    after, _ = becomes(reversals, text, T=4)
    assert directions(after) == ([1], [1])
    assert turns(after) == []


def test_an_axis_that_an_unsqueeze_adds_is_not_reversed() -> None:
    text = scan(
        "h1 = Add (h, x) y = Tanh (h1)",
        given="float[2] s, float[2] v",
        before="r = Slice (v, last, far, zero, last) t = Unsqueeze (r, zero)",
        operands="s, t",
        after="y0 = Squeeze (ys, zero) w = Slice (y0, last, far, zero, last)",
        results="float[2] z, float[2] w",
        weights=WEIGHTS,
    )
    stays(reversals, text)


def test_a_transpose_is_not_written_twice_for_a_reversal_that_stays() -> None:
    text = scan(
        "h1 = Add (h, x) y = Tanh (h1)",
        given="float[2] s, float[2,3] xs",
        before="r = Slice (xs, last, far, one, last) t = Transpose (r)",
        operands="s, t",
        results="float[2] z, float[3,2] ys, float[2,3] r",
        weights=WEIGHTS,
    )
    stays(reversals, text)


@pytest.mark.parametrize("also", ["w = Neg (ys)", "w = Slice (ys, last, far, one, last)"])
def test_a_result_that_is_also_read_as_it_is_stays(also: str) -> None:
    text = scan(
        "h1 = Add (h, x) y = Tanh (h1)",
        after=f"v = Slice (ys, last, far, zero, last) {also}",
        results="float[2] z, float[3,2] v, float[3,2] w",
        weights=WEIGHTS,
    )
    stays(reversals, text)


def test_a_result_that_the_model_gives_stays() -> None:
    text = scan(
        "h1 = Add (h, x) y = Tanh (h1)",
        after="v = Slice (ys, last, far, zero, last)",
        results="float[2] z, float[3,2] v, float[3,2] ys",
        weights=WEIGHTS,
    )
    stays(reversals, text)


def test_one_reversal_is_not_exchanged_for_several() -> None:
    parts = {
        "inputs": "float[2] h, float[2] x",
        "outputs": "float[2] h1, float[2] y, float[2] w",
        "outer": "z, ys, ws",
        "results": "float[2] z, float[3,2] ys, float[3,2] ws",
        "operands": "s, r",
        "before": "r = Slice (xs, last, far, zero, last)",
        "weights": WEIGHTS,
    }
    stays(reversals, scan("h1 = Add (h, x) y = Tanh (h1) w = Exp (x)", **parts))
    after, _ = becomes(reversals, around(ANY_LENGTH["Slice"]).replace("Tanh", "Sin"))
    assert turns(after) == []


def test_two_reversals_of_a_scan_that_is_reversed_cancel() -> None:
    text = around(ANY_LENGTH["Slice"]).replace(
        "num_scan_inputs = 1", "num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1]"
    )
    after, _ = becomes(reversals, text)
    assert directions(after) == ([], [])


@pytest.mark.parametrize("opset", [9, 10, 13, 25])
def test_old_and_new_opsets(opset: int) -> None:
    text = scan(
        "h1 = Add (h, x) y = Tanh (h1)",
        before="r = Gather (xs, down)",
        operands="s, r",
        after="zs = Gather (ys, down)",
        results="float[2] z, float[3,2] zs",
        weights=WEIGHTS,
    )
    becomes(reversals, text, opset=opset)


def test_in_opset_9_a_lone_reversal_stays() -> None:
    text = scan("h1 = Add (h, x) y = Tanh (h1)", after="v = Gather (ys, down)", results="float[2] z, float[3,2] v", weights=WEIGHTS)
    stays(reversals, text, opset=9)
    becomes(reversals, text, opset=10)


@pytest.mark.parametrize("kind", ["string", "bool", "int64"])
def test_every_type_is_turned(kind: str) -> None:
    text = scan(
        "y = Identity (x)",
        inputs=f"{kind}[2] x",
        outputs=f"{kind}[2] y",
        given=f"{kind}[3,2] xs",
        operands="r",
        outer="ys",
        before="r = Slice (xs, last, far, zero, last)",
        results=f"{kind}[3,2] ys",
        weights=WEIGHTS,
    )
    becomes(reversals, text, feeds={"xs": np.array([["a", "b"], ["c", "d"], ["e", "f"]], object)} if kind == "string" else None)


def test_rows_of_strings_that_onnxruntime_gathers_wrongly_stay() -> None:
    text = scan(
        "y = Identity (x)",
        inputs="string[2] x",
        outputs="string[2] y",
        given="string[3,2] xs",
        operands="r",
        outer="ys",
        before="r = Gather (xs, down)",
        results="string[3,2] ys",
        weights=WEIGHTS,
    )
    stays(reversals, text)


CELL = "xw = MatMul (x, W) hr = MatMul (h, R) a = Add (xw, hr) h1 = Tanh (a) y = Identity (h1)"
MATRICES = "float[2,2] W = {0.1, -0.4, 0.3, 0.7}, float[2,2] R = {0.5, 0.2, -0.6, 0.3}"
IN_A_LOOP = """g (float[1,2] s, float[T,1,2] xs) => (float[1,2] z, float[T,1,2] zs) <{weights}> {{
    sh = Shape (xs) m1d = Gather (sh, zero) m = Squeeze (m1d, zero) c = Constant <value_int = 1> () cond = Cast <to = 9> (c)
    r = Slice (xs, last, far, zero, last)
    z, ys = Loop <body = b (int64 i, bool go, float[1,2] h) => (bool on, float[1,2] h1, float[1,2] y) {{
        on = Identity (go) x = Gather (r, i) {cell} }}> (m, cond, s)
    zs = Slice (ys, last, far, zero, last) }}"""


def test_a_result_is_turned_through_the_if_that_guards_against_no_steps() -> None:
    text = IN_A_LOOP.format(weights=f"{WEIGHTS}, {MATRICES}", cell=CELL)
    after, _ = apply(text, [loop_to_scan, reversals, recurrent_cell], options=Options(native_always=True), check=False)
    assert turns(after) == []
    before = read(text, 18)
    for steps in (0, 1, 4):
        feeds = {"s": np.ones((1, 2), np.float32), "xs": np.random.default_rng(steps).random((steps, 1, 2), np.float32)}
        for one, other in zip(ort_run(after, feeds), ort_run(before, feeds), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
