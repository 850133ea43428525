"""What is read as a whole reversal, run on onnxruntime, reverses tensors of every size; what is a reversal at heart is read as one."""

import itertools

import numpy as np
import pytest

from rewrites.analysis.whole_reversals import Reversals
from tests.rewrites.apply import prepared, read
from tests.support.runtime import ort_run

SIZES = "s = Shape (x) t = Gather (s, k0) t1 = Sub (t, k1) t2 = Add (t, k1) mt = Neg (t) b = Gather (s, k1)"
WEIGHTS = """int64 k0 = {0}, int64 k1 = {1}, int64 k2 = {2}, int64 k4 = {4}, int64 m1 = {-1}, int64 m2 = {-2}, int64 m5 = {-5}, int64 far = {9223372036854775807},
    int64 int_end = {2147483647}, int64 before = {-9223372036854775808}, int64 int_before = {-2147483648}, int64[1] v0 = {0}, int64[1] v1 = {1}"""
RANGES = [
    f"Range ({', '.join(parts)})" for parts in itertools.product(["k0", "t", "t1", "m1"], ["k0", "t", "t2", "m1"], ["k1", "m1"])
]
CHANGES = [
    "w = Identity (v)",
    "w = Neg (v)",
    *(f"w = {op}" for n in ("k1", "t", "t1", "m") for op in (f"Add (v, {n})", f"Sub (v, {n})", f"Sub ({n}, v)")),
]
HOLDING = {9: False, 3: False, 2: False, 6: True, 1: True, 11: True, 10: False}
"""Types that a Range is cast to and back; whether they hold the sizes of tensors."""


def checked(nodes: str, rows: str = "T", kind: str = "float") -> bool:
    """Whether the node that gives `y` is read as a reversal of `x`; if so it is one, for many sizes."""
    text = f"g ({kind}[{rows},B] x, int64 m) => ({kind}[R,B] y) <{WEIGHTS}> {{ {SIZES} {nodes} }}"
    ctx = prepared(text, check=False)
    found = Reversals(ctx.opset, ctx.model.graph).reversal_of(ctx.model.graph.outputs[0].producer())
    if found is not None:
        assert (found.source.name, found.axis) == ("x", 0)
        model = read(text, check=False)
        for size in [int(rows)] if rows.isdigit() else [1, 2, 4, 5, 300, 2100]:
            x = np.arange(size * 2, dtype=np.float32).reshape(size, 2)
            (result,) = ort_run(model, {"x": x, "m": np.array(3)}, optimised=False)
            np.testing.assert_array_equal(result, x[::-1], err_msg=nodes)
    return found is not None


def test_a_gather_that_is_read_as_a_reversal_is_one() -> None:
    found = {(one, change) for one in RANGES for change in CHANGES if checked(f"v = {one} {change} y = Gather (x, w)")}
    assert found == {
        ("Range (t1, m1, m1)", "w = Identity (v)"),
        ("Range (k0, t, k1)", "w = Sub (t1, v)"),
        ("Range (t, k0, m1)", "w = Sub (v, k1)"),
    }


@pytest.mark.parametrize("to", HOLDING)
def test_places_cast_to_what_does_not_hold_them_are_no_reversal(to: int) -> None:
    assert checked(f"v = Range (t1, m1, m1) c = Cast <to = {to}> (v) p = Cast <to = 7> (c) y = Gather (x, p)") == HOLDING[to]
    assert (
        checked(f"v = Range (k0, t, k1) c = Cast <to = {to}> (v) d = Cast <to = 7> (c) p = Sub (t1, d) y = Gather (x, p)")
        == HOLDING[to]
    )


@pytest.mark.long
def test_a_slice_that_is_read_as_a_reversal_is_one() -> None:
    found = set()
    starts, ends = ["m1", "t1", "t", "int_end", "far", "k0", "m2", "k4"], ["before", "int_before", "m5", "m1", "mt", "k0"]
    for start, end, step, rows in itertools.product(starts, ends, ["m1", "m2", "k1"], ["T", "4"]):
        bounds = " ".join(f"u{i} = Unsqueeze ({bound}, v0)" for i, bound in enumerate((start, end, step)))
        if checked(f"{bounds} y = Slice (x, u0, u1, v0, u2)", rows):
            found.add((start, end, step, rows))
    for start, rows in itertools.product(["m1", "t1", "int_end", "far"], ["T", "4"]):
        assert (start, "before", "m1", rows) in found
        assert (start, "int_before", "m1", rows) in found


@pytest.mark.parametrize(
    ("lengths", "whole"),
    [
        ("u = Unsqueeze (t, v0) w = Unsqueeze (b, v0) l = Expand (u, w)", True),
        ("u = Unsqueeze (t1, v0) w = Unsqueeze (b, v0) l = Expand (u, w)", False),
        ("u = Unsqueeze (b, v0) w = Unsqueeze (b, v0) l = Expand (u, w)", False),
        ("u = Unsqueeze (t, v0) w = Unsqueeze (b, v0) l = Tile (u, w)", True),
        ("u = Unsqueeze (t, v0) f = Cast <to = 9> (u) c = Cast <to = 7> (f) w = Unsqueeze (b, v0) l = Expand (c, w)", False),
        ("u = Unsqueeze (m, v0) w = Unsqueeze (b, v0) l = Expand (u, w)", False),
    ],
)
def test_a_sequence_is_reversed_whole_where_all_rows_are_as_long_as_the_axis(lengths: str, whole: bool) -> None:
    assert checked(f"{lengths} y = ReverseSequence <time_axis = 0, batch_axis = 1> (x, l)") == whole
