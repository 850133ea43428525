import numpy as np
import pytest

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from rewrites.cleanup import dead_code
from rewrites.loop_form import loop_to_scan, written_rows
from tests.rewrites.apply import apply, patches, read
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import becomes, loop, scan, stays
from tests.support.text import assert_same_numbers, model_from_text, ort_run

ROW = "x = Gather (xs, i) h1 = Add (h, x) u = Unsqueeze (h1, zero)"
PLACE = "q = Unsqueeze (i, zero)"
ND = f"{PLACE} p = Unsqueeze (q, zero) t1 = ScatterND (t, p, u)"
WEIGHTS = (
    "int64[1] zero = {0}, int64[1] one = {1}, int64 two = {2}, int64 o = {0}, int64[1] far = {9223372036854775807}, int64[1,2] ones = {1, 1}"
    ", int64[3,1] rows = {0, 1, 2}, int64[1,3] columns = {0, 1, 2}, int64[2,1] cells = {0, 1}, int64[2,1] swapped = {1, 0}, int64[2,2] all = {1, 0, 1, 0}"
)  # fmt: skip


def writing(inside: str, *, t: str = "float[3,2]", **changes) -> str:
    return loop(
        f"{ROW} {inside}",
        inputs=f"float[2] h, {t} t",
        outputs=f"float[2] h1, {t} t1",
        operands="s, t0",
        **{"given": f"float[2] s, float[3,2] xs, {t} t0", "results": f"float[2] z, {t} ys", "weights": WEIGHTS, **changes},
    )


def test_a_tensor_written_wholly_is_the_stack() -> None:
    becomes(
        [written_rows, dead_code],
        writing(ND),
        """g (float[2] s, float[3,2] xs, float[3,2] t0) => (float[2] z, float[3,2] ys) <int64 m = {3}, int64[1] a = {0}, int64[1] d = {0}> {
            z, ys = Loop <body = b (i, c, h) => (c1, h1, y) {
                c1 = Identity (c)  x = Gather (xs, i)  h1 = Add (h, x)  u = Unsqueeze (h1, a)  y = Squeeze (u, d)
            }> (m, , s) }""",
    )


LONG = {"t": "float[7,2]"}
MASK = "e = Equal (rows, i) t1 = Where (e, u, t)"
PARTS = f"{PLACE} q1 = Add (q, one) a = Slice (t, zero, q, zero) b = Slice (t, q1, far, zero) t1 = Concat <axis = 0> (a, u, b)"
TURNED = f"w = Transpose (t) {PLACE} p = Unsqueeze (q, zero) k1 = ScatterND (w, p, u) t1 = Transpose (k1)"
WRITES = {
    "from a place on": writing(f"j = Add (i, two) {ND.replace('(i,', '(j,')}", **LONG),
    "backwards": writing(f"j = Sub (two, i) {ND.replace('(i,', '(j,')}", **LONG),
    "backwards wholly": writing(f"j = Sub (two, i) {ND.replace('(i,', '(j,')}"),
    "element by element": writing(f"{PLACE} r = Mul (ones, q) t1 = ScatterElements <axis = 0> (t, r, u)", **LONG),
    "where its number is": writing(MASK),
    "where its number is, of another axis": writing(MASK.replace("rows", "columns").replace("u, t", "w, t").replace("e =", "w = Unsqueeze (h1, one) e ="), t="float[2,3]"),
    "adding": writing(ND.replace("ScatterND", "ScatterND <reduction = \"add\">"), **LONG),
    "multiplying": writing(ND.replace("ScatterND", "ScatterND <reduction = \"mul\">")),
    "adding backwards": writing(f"j = Sub (two, i) {ND.replace('(i,', '(j,')}".replace("ScatterND", "ScatterND <reduction = \"add\">"), **LONG),
    "adding element by element": writing(f"{PLACE} r = Mul (ones, q) t1 = ScatterElements <axis = 0, reduction = \"add\"> (t, r, u)", **LONG),
    "adding cell by cell": writing(f"{PLACE} r = Expand (q, pair) r2 = Reshape (r, tall) p = Concat <axis = 1> (r2, cells) t1 = ScatterND <reduction = \"add\"> (t, p, h1)", weights=f"{WEIGHTS}, int64[1] pair = {{2}}, int64[2] tall = {{2, 1}}"),
    "where its number is, unsqueezed": writing("e = Equal (flat, i) e1 = Unsqueeze (e, one) t1 = Where (e1, u, t)", weights=f"{WEIGHTS}, int64[3] flat = {{0, 1, 2}}"),
    "where its number is, reshaped": writing("e = Equal (flat, i) e1 = Reshape (e, tall) t1 = Where (e1, u, t)", weights=f"{WEIGHTS}, int64[3] flat = {{0, 1, 2}}, int64[2] tall = {{3, 1}}"),
    "every other row": writing(f"j = Add (i, i) {ND.replace('(i,', '(j,')}", **LONG),
    "every other row, backwards": writing(f"k = Sub (two, i) j = Add (k, k) {ND.replace('(i,', '(j,')}", **LONG),
    "every other column": writing(f"j = Add (i, i) {TURNED.replace('(i,', '(j,')}", t="float[2,7]"),
    "modulo the number of rows": writing(f"j = Mod (i, rest) {ND.replace('(i,', '(j,')}", weights=f"{WEIGHTS}, int64 rest = {{3}}"),
    "modulo by a division": writing(f"d = Div (i, rest) e = Mul (d, rest) j = Sub (i, e) {ND.replace('(i,', '(j,')}", weights=f"{WEIGHTS}, int64 rest = {{3}}"),
    "between Transposes": writing(TURNED, t="float[2,3]"),
    "between the others": writing(PARTS, **LONG),
    "cell by cell": writing(f"{PLACE} r = Expand (q, pair) r2 = Reshape (r, tall) p = Concat <axis = 1> (r2, cells) t1 = ScatterND (t, p, h1)", weights=f"{WEIGHTS}, int64[1] pair = {{2}}, int64[2] tall = {{2, 1}}"),
    "cell by cell, by allowzero": writing(f"{PLACE} r = Expand (q, pair) r2 = Reshape <allowzero = 1> (r, tall) p = Concat <axis = 1> (r2, cells) t1 = ScatterND (t, p, h1)", weights=f"{WEIGHTS}, int64[1] pair = {{2}}, int64[2] tall = {{2, 1}}"),
    "columns": writing(f"{PLACE} r = Expand (q, pair) r2 = Reshape (r, tall) p = Concat <axis = 1> (cells, r2) t1 = ScatterND (t, p, h1)", weights=f"{WEIGHTS}, int64[1] pair = {{2}}, int64[2] tall = {{2, 1}}", t="float[2,5]"),
    "after what is there was read": writing(f"v = Gather (t, i) u1 = Add (u, v) {ND.replace(', u)', ', u1)')}"),
    "and its size asked for": writing(f"n = Shape (t) n1 = Slice (n, one, far, zero) n0 = Concat <axis = 0> (one, n1) u1 = Expand (u, n0) {ND.replace(', u)', ', u1)')}"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRITES)
def test_every_way_to_write_keeps_its_numbers(case: str) -> None:
    becomes(written_rows, WRITES[case])
    after, _ = becomes([written_rows, dead_code, loop_to_scan], WRITES[case])
    scans = [node for node in after.graph.node if node.op_type == "Scan"]
    assert len(scans[0].output) == 2


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize("more", ["", "t0 = Expand (f, n)"])
def test_as_many_rows_as_there_are_steps_are_written(size: int, more: str) -> None:
    text = writing(
        ND,
        t="float[T,2]",
        steps=None,
        given="float[2] s, float[T,2] xs" + ("" if more else ", float[T,2] t0"),
        before=f"n = Shape (xs) m = Gather (n, o) {more}",
        weights=f"{WEIGHTS}, float f = {{0}}",
    ).replace(", int64 m) =>", ") =>")
    becomes(written_rows, text, T=size)
    becomes([written_rows, dead_code, loop_to_scan], text, T=size)


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_a_row_between_the_others_is_written_in_a_tensor_of_any_size(size: int) -> None:
    text = writing(
        PARTS,
        t="float[T,2]",
        steps=None,
        given="float[2] s, float[T,2] xs, float[T,2] t0",
        before="n = Shape (xs) m = Gather (n, o)",
    ).replace(", int64 m) =>", ") =>")
    becomes(written_rows, text, T=size)


NEXT = f"j = Add (i, k) b = Gather (t, i) x = Gather (xs, i) h1 = Tanh (h) v = Mul (b, x) u = Unsqueeze (v, zero) {ND.replace('(i,', '(j,')}"


def previous(inside: str, t: str = "float[4,2]", **changes) -> str:
    return writing(inside, **{"t": t, "weights": f"{WEIGHTS}, int64 k = {{1}}", **changes}).replace(ROW, "", 1)


def test_the_row_of_the_previous_step_becomes_a_state() -> None:
    becomes(
        [written_rows, dead_code, loop_to_scan],
        previous(NEXT),
        """g (float[2] s, float[3,2] xs, float[4,2] t0) => (float[2] z, float[4,2] ys) <int64 o = {0}, int64[1] zero = {0}, int64[1] axis = {0}, int64[1] one = {1}> {
            first = Gather <axis = 0> (t0, o)
            z, last, rows = Scan <num_scan_inputs = 1, body = b (h, before, x) => (h1, v1, v2) {
                h1 = Tanh (h)  v = Mul (before, x)  u = Unsqueeze (v, zero)  v2 = Squeeze (u, axis)  v1 = Identity (v2)
            }> (s, first, xs)
            head = Slice (t0, axis, one, axis)  y = Concat <axis = 0> (head, rows)  ys = Identity (y) }""",
    )


PREVIOUS = {
    "backwards": previous(NEXT.replace("j = Add (i, k) b = Gather (t, i)", "j = Sub (two, i) e = Add (j, k) b = Gather (t, e)")),
    "at first the last row": previous(NEXT.replace("j = Add (i, k) b = Gather (t, i)", "j = Identity (i) e = Sub (j, k) b = Gather (t, e)")),
    "as a slice": previous(NEXT.replace("b = Gather (t, i)", "e = Unsqueeze (i, zero) f = Add (e, one) g = Slice (t, e, f, zero) b = Squeeze (g, zero)")),
    "with its axis": previous(NEXT.replace("b = Gather (t, i)", "e = Unsqueeze (i, zero) g = Gather (t, e) b = Squeeze (g, zero)")),
    "every other row": previous(NEXT.replace("j = Add (i, k) b = Gather (t, i)", "e = Add (i, i) j = Add (e, two) b = Gather (t, e)"), t="float[7,2]"),
}  # fmt: skip


@pytest.mark.parametrize("case", PREVIOUS)
def test_every_way_to_read_the_row_of_the_previous_step_keeps_its_numbers(case: str) -> None:
    becomes(written_rows, PREVIOUS[case])


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_row_of_the_previous_step_is_carried_where_there_are_steps(size: int) -> None:
    last = NEXT.replace("j = Add (i, k) b = Gather (t, i)", "j = Identity (i) e = Sub (j, k) b = Gather (t, e)")
    text = previous(
        last,
        t="float[T,2]",
        steps=None,
        given="float[2] s, float[T,2] xs, float[T,2] t0",
        before="n = Shape (xs) m = Gather (n, o)",
    ).replace(", int64 m) =>", ") =>")
    stays(written_rows, text)
    becomes([loop_to_scan, written_rows], text, T=size)


STAYING = {
    "and reads the row before the previous": previous(NEXT.replace("Add (i, k)", "Add (i, two)"), t="float[5,2]"),
    "and reads a slice that is empty at first": previous(NEXT.replace("j = Add (i, k) b = Gather (t, i)", "j = Identity (i) e0 = Sub (j, k) e = Unsqueeze (e0, zero) f = Add (e, one) g = Slice (t, e, f, zero) b = ReduceSum <keepdims = 0> (g, zero)")),
    "and reads strings of the previous row": previous(NEXT.replace("Mul (b, x)", "Identity (b)"), t="string[4,2]", given="float[2] s, float[3,2] xs, string[4,2] t0", results="float[2] z, string[4,2] ys"),
    "and reads the row of the next step": previous(NEXT.replace("j = Add (i, k) b = Gather (t, i)", "j = Identity (i) e = Add (j, k) b = Gather (t, e)")),
    "where there is no row": writing("e = Equal (none, i) t1 = Where (e, u, t)", t="float[0,2]", weights=f"{WEIGHTS}, int64[0,1] none = {{}}"),
    "every other row, beyond the last": writing(f"j = Add (i, i) {ND.replace('(i,', '(j,')}"),
    "modulo fewer rows": writing(f"j = Mod (i, two) {ND.replace('(i,', '(j,')}"),
    "transposed once": writing(TURNED.replace("(t)", "<perm = [0, 1]> (t)"), t="float[2,2]", steps=2),
    "transposed and read": writing(f"{TURNED.replace('(w, p, u)', '(w, p, v)')} b = Slice (w, zero, one, zero) v = Add (u, b)".replace(" k1 =", " b = Slice (w, zero, one, zero) v = Add (u, b) k1 =", 1).rsplit(" b = ", 1)[0], t="float[2,3]"),
    "adding between Transposes": writing(TURNED.replace("ScatterND", "ScatterND <reduction = \"add\">"), t="float[2,3]"),
    "outside the tensor": writing(f"j = Add (i, two) {ND.replace('(i,', '(j,')}"),
    "twice the same row": writing(ND.replace("(i,", "(two,")),
    "and read elsewhere": writing(f"{ND} y = Tanh (t)").replace("t1)", "t1, float[3,2] y)", 1).replace("ys)", "ys, float[N,3,2] w)", 1).replace("z, ys =", "z, ys, w ="),
    "and what is written is read": writing(f"{ND} y = ReduceMax <axes = [1], keepdims = 0> (t1)").replace("t1)", "t1, float[3] y)", 1).replace("ys)", "ys, float[N,3] w)", 1).replace("z, ys =", "z, ys, w =").replace("<axes = [1], keepdims = 0> (t1)", "<keepdims = 0> (t1, one)"),
    "by number and read": writing(f"{MASK} y = Tanh (t1)").replace("t1)", "t1, float[3,2] y)", 1).replace("ys)", "ys, float[N,3,2] w)", 1).replace("z, ys =", "z, ys, w ="),
    "between the others and read": writing(f"{PARTS} t2 = Identity (t1) y = Tanh (t2)").replace("t1)", "t1, float[3,2] y)", 1).replace("ys)", "ys, float[N,3,2] w)", 1).replace("z, ys =", "z, ys, w ="),
    "and what is written is stacked too": writing(f"{ND} y = Identity (t1)").replace("t1)", "t1, float[3,2] y)", 1).replace("ys)", "ys, float[N,3,2] w)", 1).replace("z, ys =", "z, ys, w ="),
    "and read where the last step wrote": writing(f"j = Sub (i, two) k = Abs (j) v = Gather (t, k) u1 = Add (u, v) {ND.replace(', u)', ', u1)')}"),
    "the larger row": writing(ND.replace("ScatterND", "ScatterND <reduction = \"max\">")),
    "adding to the same row": writing(ND.replace("(i, zero)", "(o, zero)").replace("ScatterND", "ScatterND <reduction = \"add\">")),
    "where another mask is": writing("e = Equal (flat, i) e1 = Unsqueeze (e, one) t1 = Where (e1, u, t)", weights=f"{WEIGHTS}, int64[3] flat = {{0, 2, 1}}"),
    "where there is another number": writing("e = Equal (flat, two) e1 = Unsqueeze (e, one) t1 = Where (e1, u, t)", weights=f"{WEIGHTS}, int64[3] flat = {{0, 1, 2}}"),
    "cells in another order": writing(f"{PLACE} r = Expand (q, pair) r2 = Reshape (r, tall) p = Concat <axis = 1> (r2, swapped) t1 = ScatterND (t, p, h1)", weights=f"{WEIGHTS}, int64[1] pair = {{2}}, int64[2] tall = {{2, 1}}"),
    "one cell twice": writing("p = Mul (all, i) t1 = ScatterND (t, p, h1)"),
    "the other way round": writing(MASK.replace("u, t", "t, u")),
    "one row short": writing(PARTS.replace("Add (q, one)", "Identity (q)"), t="float[T,2]", given="float[2] s, float[3,2] xs, float[3,2] t0", results="float[2] z, float[N,2] ys"),
}  # fmt: skip


@pytest.mark.parametrize("case", STAYING)
def test_what_is_no_such_write_stays(case: str) -> None:
    stays(written_rows, STAYING[case])


def test_a_loop_of_unknown_length_may_not_write_all_rows() -> None:
    text = writing(ND, steps=None)
    stays(written_rows, text)
    becomes(loop_to_scan, text, feeds={**data(read(text), m=1), "m": np.array(2)})


def test_a_scan_that_writes_no_rows_is_left_alone() -> None:
    stays(written_rows, scan("h1 = Add (h, x) y = Tanh (h)"))


@pytest.mark.parametrize("case", WRITES)
def test_a_scan_is_read_like_the_loop_that_it_was(case: str) -> None:
    after, _ = becomes([loop_to_scan, written_rows, dead_code], WRITES[case])
    assert len(next(node for node in after.graph.node if node.op_type == "Scan").output) == 2


SCANS = {
    "numbers": ("float[4,2] t, int64 k", "", "float[4,2] t1", "t0, ks"),
    "numbers with an axis": ("float[4,2] t, int64[1] n", "k = Squeeze (n, zero)", "float[4,2] t1", "t0, columns"),
    "computed numbers": ("float[4,2] t, int64 k", "", "float[4,2] t1", "t0, js"),
    "a state": ("int64 k, float[4,2] t", "k1 = Sub (k, one)", "int64 k1, float[4,2] t1", "two, t0"),
}


@pytest.mark.parametrize("case", SCANS)
@pytest.mark.parametrize("directions", [[0, 0], [1, 0], [0, 1], [1, 1]])
def test_a_scan_writes_rows_at_scanned_numbers_or_a_counting_state(case: str, directions: list[int]) -> None:
    inputs, before, outputs, operands = SCANS[case]
    is_state = case == "a state"
    becomes(
        written_rows,
        f"""g (float[3,2] xs, float[4,2] t0) => (float[4,2] ys)
        <int64[3] ks = {{0, 1, 2}}, int64[3,1] columns = {{3, 2, 1}}, int64[1] zero = {{0}}, int64 o = {{0}}, int64 one = {{1}}, int64 two = {{2}}> {{
            n = Shape (xs) m0 = Gather (n, o) r = Range (o, m0, one) js = Add (r, one)
            {"z, ys" if is_state else "ys"} = Scan <body = b ({inputs}, float[2] x) => ({outputs}) {{
                {before} q = Unsqueeze (k, zero) p = Unsqueeze (q, zero) u = Unsqueeze (x, zero) t1 = ScatterND (t, p, u)
            }}, num_scan_inputs = {2 - is_state}, scan_input_directions = {directions[is_state:]}> ({operands}, xs)
        }}""",
    )  # fmt: skip


@pytest.mark.parametrize("case", STAYING)
def test_a_scan_keeps_what_is_no_such_write(case: str) -> None:
    _, report = apply(STAYING[case], [loop_to_scan, written_rows])
    assert "written-rows" not in patches(report)


def test_a_row_that_inference_does_not_know_has_the_type_of_the_tensor() -> None:
    model = model_from_text(
        f"""<ir_version: 10, opset_import: ["": 18, "com.microsoft": 1]>
        g (float[3,2] xs, float[3,2] t0) => (float[3,2] ys) <{WEIGHTS}, int64 m = {{3}}, bool c0 = {{1}}> {{
            ys = Loop <body = b (int64 i, bool c, float[3,2] t) => (bool c1, t1) {{
                c1 = Identity (c)  x = Gather (xs, i)  h1 = com.microsoft.QuickGelu (x)  u = Unsqueeze (h1, zero)  {ND}
            }}> (m, c0, t0)
        }}""",
        check=False,
    )
    loaded, report = rewritten(model, passes=["written-rows", "dead-code"], debug=True)
    assert patches(report)
    feeds = data(model)
    assert_same_numbers(ort_run(to_caller_type(loaded), feeds), ort_run(model, feeds))
