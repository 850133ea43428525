import numpy as np
import pytest

from rewrites.cleanup import dead_code
from rewrites.loop_form import loop_to_scan, step_slices
from tests.rewrites.apply import read
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import becomes, loop, scan, stays

WEIGHTS = (
    "int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] far = {9223372036854775807}, int64[2] axes = {0, 1}"
    ", int64[1] stride = {1000000000}, float[1] most = {1000000000}, bool[1] never = {0}, int64[1] less = {-1000000000}"
    ", int64 o = {0}, int64 last = {2}, int64 rows = {3}, int64[1] minus = {-1}"
)
STEP = "h1 = Add (h, x) y = Tanh (h)"


def reading(inside: str, **changes) -> str:
    return loop(f"{inside} {STEP}", **{"weights": WEIGHTS, **changes})


def test_a_slice_of_one_row_is_a_gather() -> None:
    becomes(
        [step_slices, dead_code],
        reading("b = Unsqueeze (i, zero) e = Add (b, one) v = Slice (xs, b, e, zero) x = Squeeze (v, zero)"),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[N,2] ys) <int64 m = {3}, int64[1] a = {0}, int64[1] d = {0}> {
            z, ys = Loop <body = b (i, c, h) => (c1, h1, y) {
                c1 = Identity (c)  r = Gather <axis = 0> (xs, i)  v = Unsqueeze (r, a)  x = Squeeze (v, d)
                h1 = Add (h, x)  y = Tanh (h)
            }> (m, , s) }""",
    )


NORMAL = "n = Less (j, o) w = Add (j, rows) p = Where (n, w, j) a = Max (p, o) q = Min (a, last) b = Unsqueeze (q, zero)"
END = (
    "f = Cast <to = 1> (b) u = Max (f, most) k = Cast <to = 7> (u) q = Equal (k, stride) w = And (q, never) e = Where (w, less, k)"
)
"""The end of a read of one row as tf2onnx writes it: the largest size, unless the stride is negative."""
SLICES = {
    "several axes": reading("b0 = Unsqueeze (i, zero) b = Concat <axis = 0> (b0, zero) d = Concat <axis = 0> (one, two) e = Add (b, d) v = Slice (xs, b, e, axes) x = Squeeze (v, zero)"),
    "part of another axis": reading("b0 = Unsqueeze (i, zero) b = Concat <axis = 0> (b0, zero) d = Concat <axis = 0> (one, one) e = Add (b, d) v = Slice (xs, b, e, axes) x = Squeeze (v, zero)"),
    "to the end of another axis": reading("b0 = Unsqueeze (i, zero) b = Concat <axis = 0> (b0, one) e0 = Add (b0, one) e = Concat <axis = 0> (e0, far) v = Slice (xs, b, e, axes) x = Squeeze (v, zero)"),
    "another axis": reading("b = Unsqueeze (i, zero) e = Add (b, one) v = Slice (xs, b, e, one) x = Squeeze (v, one)", given="float[2] s, float[2,3] xs"),
    "two rows": reading("b = Unsqueeze (i, zero) e = Add (b, two) v = Slice (xs, b, e, zero) x = ReduceSum <keepdims = 0> (v, zero)", given="float[2] s, float[4,2] xs"),
    "normalised": reading(f"j = Identity (i) {NORMAL} e = Add (b, one) v = Slice (xs, b, e, zero) x = Squeeze (v, zero)"),
    "from the end": reading(f"j = Sub (last, i) {NORMAL} e = Add (b, one) v = Slice (xs, b, e, zero) x = Squeeze (v, zero)"),
    "clipped": reading("j = Clip (i, o, last) b = Unsqueeze (j, zero) e = Add (b, one) v = Slice (xs, b, e, zero) x = Squeeze (v, zero)"),
    "every other": reading("j = Add (i, i) b = Unsqueeze (j, zero) e = Add (b, one) v = Slice (xs, b, e, zero) x = Squeeze (v, zero)", given="float[2] s, float[9,2] xs"),
    "in long strides": reading("b = Unsqueeze (i, zero) e = Add (b, one) v = Slice (xs, b, e, zero, stride) x = Squeeze (v, zero)"),
    "of tf2onnx": reading(f"b = Unsqueeze (i, zero) {END} v = Slice (xs, b, e, zero, stride) x = Squeeze (v, zero)"),
    "by GatherND": reading("b = Unsqueeze (i, zero) x = GatherND (xs, b)"),
}  # fmt: skip


@pytest.mark.parametrize("case", SLICES)
def test_every_such_read_keeps_its_numbers(case: str) -> None:
    becomes(step_slices, SLICES[case])
    after, _ = becomes([step_slices, dead_code, loop_to_scan], SLICES[case])
    assert "Scan" in [node.op_type for node in after.graph.node]


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize("v", ["e = Add (b, one) v = Slice (xs, b, e, zero)", f"{END} v = Slice (xs, b, e, zero, stride)"])
def test_rows_of_a_tensor_of_any_size_are_read(v: str, size: int) -> None:
    text = reading(
        f"b = Unsqueeze (i, zero) {v} x = Squeeze (v, zero)",
        steps=None,
        given="float[2] s, float[T,2] xs",
        before="n = Shape (xs) m = Gather (n, o)",
    ).replace(", int64 m) =>", ") =>")
    after, _ = becomes([step_slices, dead_code, loop_to_scan], text, T=size)
    (branch,) = [a.g for a in after.graph.node[-1].attribute if a.name == "then_branch"]
    assert branch.node[-1].input[-1] == "xs"


STAYING = {
    "too few rows": reading("b = Unsqueeze (i, zero) e = Add (b, one) v = Slice (xs, b, e, zero) x = ReduceSum <keepdims = 0> (v, zero)", given="float[2] s, float[2,2] xs"),
    "before the first": reading("j = Sub (i, last) b = Unsqueeze (j, zero) e = Add (b, one) v = Slice (xs, b, e, zero) x = ReduceSum <keepdims = 0> (v, zero)"),
    "all so far": reading("b = Unsqueeze (i, zero) e = Add (b, one) v = Slice (xs, zero, e, zero) x = ReduceSum <keepdims = 0> (v, zero)"),
    "of a state": reading("b = Unsqueeze (j, zero) e = Add (b, one) x = Slice (h, b, e, zero)").replace("b = Uns", "j = Min (i, o) b = Uns"),
    "every second": reading("b = Unsqueeze (i, zero) e = Add (b, one) v = Slice (xs, b, e, zero, two) x = ReduceSum <keepdims = 0> (v, zero)"),
    "backwards": reading("b = Unsqueeze (i, zero) e = Sub (b, one) v = Slice (xs, b, e, zero, minus) x = ReduceSum <keepdims = 0> (v, zero)"),
    "a long stride that ends before it starts": reading("b = Unsqueeze (i, zero) v = Slice (xs, b, b, zero, stride) x = ReduceSum <keepdims = 0> (v, zero)"),
    "a stride that reads a second row": reading("b = Unsqueeze (i, zero) v = Slice (xs, b, stride, zero, two) x = ReduceSum <keepdims = 0> (v, zero)"),
    "unknown rows": reading("b = Unsqueeze (i, zero) e = Add (b, one) v = Slice (xs, b, e, zero) x = ReduceSum <keepdims = 0> (v, zero)", given="float[2] s, float[T,2] xs"),
    "at what is fed": reading("e = Add (b, one) v = Slice (xs, b, e, zero) x = ReduceSum <keepdims = 0> (v, zero)", given="float[2] s, float[3,2] xs, int64[1] b"),
}  # fmt: skip


@pytest.mark.parametrize("case", STAYING)
def test_what_is_no_such_read_stays(case: str) -> None:
    stays(step_slices, STAYING[case])


def test_a_loop_of_unknown_length_reads_as_before() -> None:
    text = reading(
        "b = Unsqueeze (i, zero) e = Add (b, one) v = Slice (xs, b, e, zero) x = ReduceSum <keepdims = 0> (v, zero)", steps=None
    )
    stays(step_slices, text)
    feeds = {**data(read(text), m=1), "m": np.array(5)}
    becomes(loop_to_scan, text, feeds=feeds)


def test_a_scan_is_left_alone() -> None:
    stays(step_slices, scan("h1 = Add (h, x) y = Tanh (h)"))
