"""Rows that an operator is found to write against what it does to a tensor when run, step by step."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from rewrites.analysis.induction.affine_expression import STEP
from rewrites.analysis.induction.induction_variables import integers_of, trip_count
from rewrites.loop_form.row_writes import row_write
from rewrites.loops import LoopView, view
from tests.rewrites.apply import one_loop, prepared
from tests.support.runtime import ort_run

ROWS, WIDTH, STEPS = 5, 3, 7

PLACES = {
    "i": "p = Identity (i)",
    "i - 1": "p = Sub (i, k1)",
    "2 - i": "p = Sub (k2, i)",
    "counter": "p = Identity (c)",
    "2 * i": "p = Mul (i, k2)",
    "i mod 2": "p = Mod (i, k2)",
    "1": "p = Identity (k1)",
    "in floats": "f = Cast <to = 1> (i) p = Cast <to = 7> (f)",
}
EVEN = {"i", "i - 1", "2 - i", "counter", "2 * i", "in floats"}

ROW = "r = Gather (rows, i) u = Unsqueeze (p, v0)"
COLUMN = "r = Gather (columns, i) u = Unsqueeze (p, v0)"
WRITES = {
    "ScatterND at [1, 1]": (0, f"{ROW} uu = Unsqueeze (u, v0) one = Unsqueeze (r, v0) a = ScatterND (t, uu, one)"),
    "ScatterND at [1]": (0, f"{ROW} a = ScatterND (t, u, r)"),
    "ScatterND at all of a row": (0, f"{ROW} e = Expand (u, v3) ee = Unsqueeze (e, v1) at = Concat <axis = 1> (ee, upto3) a = ScatterND (t, at, r)"),
    "ScatterND at all of a column": (1, f"{COLUMN} e = Expand (u, v5) ee = Unsqueeze (e, v1) at = Concat <axis = 1> (upto5, ee) a = ScatterND (t, at, r)"),
    "ScatterElements of a row": (0, f"{ROW} e = Expand (u, v13) one = Unsqueeze (r, v0) a = ScatterElements <axis = 0> (t, e, one)"),
    "ScatterElements of a column": (1, f"{COLUMN} e = Expand (u, v51) one = Unsqueeze (r, v1) a = ScatterElements <axis = -1> (t, e, one)"),
    "Where numbers are it": (0, f"{ROW} k = Equal (upto5, p) one = Unsqueeze (r, v0) a = Where (k, one, t)"),
    "Where it is the numbers": (0, f"{ROW} k = Equal (p, upto5) a = Where (k, r, t)"),
    "Where of a column": (1, f"{COLUMN} k = Equal (u, flat3) one = Unsqueeze (r, v1) a = Where (k, one, t)"),
    "Where numbers fall": (0, f"{ROW} q = Sub (k4, p) k = Equal (falling5, q) one = Unsqueeze (r, v0) a = Where (k, one, t)"),
    "Concat": (0, f"{ROW} u1 = Add (u, v1) h = Slice (t, v0, u, v0) l = Slice (t, u1, far, v0) one = Unsqueeze (r, v0) a = Concat <axis = 0> (h, one, l)"),
    "Concat between Transposes": (1, f"{COLUMN} u1 = Add (u, v1) w = Transpose (t) h = Slice (w, v0, u, v0) l = Slice (w, u1, far, v0) one = Unsqueeze (r, v0) k = Concat <axis = 0> (h, one, l) a = Transpose (k)"),
    "ScatterND between Transposes": (0, f"{ROW} e = Expand (u, v3) ee = Unsqueeze (e, v1) at = Concat <axis = 1> (upto3, ee) w = Transpose <perm = [1, 0]> (t) k = ScatterND (w, at, r) a = Transpose <perm = [1, 0]> (k)"),
    "Concat to the last": (0, f"{ROW} u1 = Add (u, v1) h = Slice (t, v0, u, v0) l = Slice (t, u1, v5, v0) one = Unsqueeze (r, v0) a = Concat <axis = 0> (h, one, l)"),
}  # fmt: skip
OTHERS = {
    "ScatterND of maxima": f"{ROW} uu = Unsqueeze (u, v0) one = Unsqueeze (r, v0) a = ScatterND <reduction = \"max\"> (t, uu, one)",
    "ScatterND at a part of a row": f"{ROW} e = Expand (u, v2) ee = Unsqueeze (e, v1) at = Concat <axis = 1> (ee, upto2) o = Slice (r, v0, v2) a = ScatterND (t, at, o)",
    "ScatterND in another order": f"{ROW} e = Expand (u, v3) ee = Unsqueeze (e, v1) at = Concat <axis = 1> (ee, down3) a = ScatterND (t, at, r)",
    "ScatterElements of a part": f"{ROW} e = Expand (u, v12) o = Slice (r, v0, v2) one = Unsqueeze (o, v0) a = ScatterElements <axis = 0> (t, e, one)",
    "Where every second": f"{ROW} k = Equal (evens5, p) a = Where (k, r, t)",
    "Where the row differs in its rows": f"{ROW} k = Equal (upto5, p) a = Where (k, whole, t)",
    "Where two are given one row": f"{ROW} k = Equal (twos5, p) a = Where (k, r, t)",
    "Concat with a gap": f"{ROW} u1 = Add (u, v2) h = Slice (t, v0, u, v0) l = Slice (t, u1, far, v0) one = Unsqueeze (r, v0) a = Concat <axis = 0> (h, one, l)",
    "Concat short of the last": f"{ROW} u1 = Add (u, v1) h = Slice (t, v0, u, v0) l = Slice (t, u1, v4, v0) one = Unsqueeze (r, v0) a = Concat <axis = 0> (h, one, l)",
}  # fmt: skip
NUMBERS = {
    **{f"v{n}": [n] for n in (0, 1, 2, 3, 4, 5)},
    "v12": [1, 2], "v13": [1, 3], "v51": [5, 1], "far": [2**31 - 1], "flat3": [0, 1, 2],
    "upto2": [[0], [1]], "upto3": [[0], [1], [2]], "upto5": [[0], [1], [2], [3], [4]], "down3": [[2], [1], [0]],
    "falling5": [[4], [3], [2], [1], [0]], "evens5": [[0], [2], [4], [6], [8]], "twos5": [[0], [0], [1], [1], [2]],
}  # fmt: skip


def text_of(place: str, write: str) -> str:
    weights = [f"int64 k{n} = {{{n}}}" for n in (1, 2, 4, 7)]
    for name, numbers in NUMBERS.items():
        array = np.array(numbers)
        weights.append(f"int64{list(array.shape)} {name} = {{{', '.join(map(str, array.reshape(-1)))}}}")
    return f"""g (float[{ROWS},{WIDTH}] t0, float[{STEPS},{WIDTH}] rows, float[{STEPS},{ROWS}] columns, float[{ROWS},{WIDTH}] whole)
        => (float[{ROWS},{WIDTH}] te, float[] before, float[] after, float[] given) <{", ".join(weights)}> {{
        ce, te, before, after, given = Loop <body = body (int64 i, bool go, int64 c, float[{ROWS},{WIDTH}] t)
            => (bool go1, int64 c1, float[{ROWS},{WIDTH}] a, float[{ROWS},{WIDTH}] b1, float[{ROWS},{WIDTH}] a1, float[] g1) {{
            go1 = Identity (go) c1 = Add (c, k1) {PLACES[place]} {write}
            b1 = Identity (t) a1 = Identity (a) g1 = Identity (r) }}> (STEPS, , k1, t0) }}"""


FEEDS = {
    "t0": -1 - np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH),
    "rows": np.arange(STEPS * WIDTH, dtype=np.float32).reshape(STEPS, WIDTH),
    "columns": np.arange(STEPS * ROWS, dtype=np.float32).reshape(STEPS, ROWS),
    "whole": 100 + np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH),
}


def found_and_run(place: str, text: str) -> tuple[tuple[int, int, int] | None, list[np.ndarray]]:
    """Axis, first place and slope of the write that is found; the tensor before and after each step, and the row by the write."""
    text = text_of(place, text)
    for steps in ("k7", "k4", "k2"):  # as many as all places are there for
        ctx = prepared(text.replace("STEPS", steps), check=False)
        loop = view(one_loop(ctx), ctx.opset)
        assert isinstance(loop, LoopView)
        state, (result,) = loop.states[1], [node for node in loop.body for value in node.outputs if value.name == "a"]
        state.inner.shape = state.initial.shape  # as the rule assumes, and proves after
        write = row_write(result, state, integers_of(loop, ctx.opset, trip_count(loop, ctx.opset)))
        found = None
        if write is not None:
            assert write.node is result
            assert not write.index.terms.keys() - {STEP}
            found = (write.axis, int(write.index.const.item()), write.index.factor(STEP))
            b = ctx.builder()
            row = write.emit_row(b)
            b.insert_before(write.node)
            (copy,) = [node for node in loop.body for value in node.outputs if value.name == "g1"]
            copy.replace_input_with(0, row)
            onnx.checker.check_model(ir.to_proto(ctx.model))
        try:
            return found, ort_run(ir.to_proto(ctx.model), FEEDS, optimised=False)[1:]
        except Exception:
            continue
    return found, []


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("place", PLACES)
def test_the_row_found_is_all_that_changes_and_becomes_the_row_given(place: str, write: str) -> None:
    axis, text = WRITES[write]
    found, stacks = found_and_run(place, text)
    assert (found is not None) == (place in EVEN)
    checked = 0
    if found is not None:
        assert found[0] == axis
        for step, (before, after, row) in enumerate(zip(*stacks, strict=True)):
            at = found[1] + found[2] * step
            if 0 <= at < before.shape[axis]:
                wanted = np.moveaxis(before.copy(), axis, 0)
                wanted[at] = row
                np.testing.assert_array_equal(np.moveaxis(after, axis, 0), wanted)
                np.testing.assert_array_equal(row, FEEDS["columns" if axis else "rows"][step])
                checked += 1
    assert checked >= 2 or place not in EVEN or (place == "i - 1" and not stacks)  # where i - 1 is -1, Concat makes it longer


@pytest.mark.parametrize("write", OTHERS)
def test_what_writes_less_or_more_or_elsewhere_is_no_write_of_a_row(write: str) -> None:
    assert found_and_run("i", OTHERS[write])[0] is None
