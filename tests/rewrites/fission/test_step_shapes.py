"""What may have another shape in another step never crosses a cut; what follows of it with one shape does."""

import pytest

from tests.rewrites.fission.harness import body_ops, scan, split

COUNT = "p = Greater (x, nought) c = Cast <to = 7> (p) n = ReduceSum <keepdims = 1> (c, zero)"
FROM_STATE = COUNT.replace("Greater (x,", "Greater (s,")
SHORT = {
    "cut": "v = Slice (w, zero, n, zero)",
    "cut from the front": "v = Slice (w, n, far, zero)",
    "counted": "m = Squeeze (n, zero) r = Range (first, m, step) v = Cast <to = 1> (r)",
    "filled": "v = ConstantOfShape <value = float[1] {2}> (n)",
    "expanded": "v = Expand (nought, n)",
    "repeated": "v = Tile (w, n)",
    "padded": "q = Concat <axis = 0> (zero, n) v = Pad (w, q)",
    "chosen": "v = Compress (w, p)",
    "found": "z = NonZero (p) z1 = Squeeze (z, zero) v = Cast <to = 1> (z1)",
    "without doubles": "f = Floor (x) v = Unique (f)",
    "the largest": "v, i = TopK (w, n)",
    "split": "a = Sub (three, n) q = Concat <axis = 0> (n, a) v, b = Split (w, q)",
    "one-hot": "n1 = Add (n, one) o = OneHot (zero, n1, hot) v = Squeeze (o, zero)",
    "of a branch": """t0 = Squeeze (n, zero) t = Greater (t0, step)
        v = If (t) <then_branch = yes () => (float[A] a) { a = Neg (w) }, else_branch = no () => (float[B] b) { b = Slice (w, zero, one, zero) }>""",
    "of a loop": """m = Squeeze (n, zero) e, v = Loop <body = inner (int64 i, bool k, float u) => (bool k1, float u1, float u2)
        { k1 = Identity (k) u1 = Add (u, nought) u2 = Neg (u) }> (m, yes, nought)""",
    "scanned": "n1 = Add (n, one) a = Slice (w, zero, n1, zero) v = Scan <num_scan_inputs = 1, body = inner (float u) => (float u1) { u1 = Neg (u) }> (a)",
}
WEIGHTS = (
    "int64[1] zero = {0}, int64[1] one = {1}, int64[1] three = {3}, int64[1] far = {1000}, int64 first = {0}, int64 step = {1}, "
    "float nought = {0.1}, float[2] hot = {0, 1}, bool yes = {1}"
)


def model(body: str, *, sums: bool = True) -> str:
    text = scan(f"k = Tanh (s) s_next = Add (k, x) {body}", "y", states="s").replace(") {\n", f") <{WEIGHTS}> {{\n", 1)
    return text.replace("float[3] y", "float y").replace("float[5, 3] ys", "float[5] ys") if sums else text


@pytest.mark.parametrize("short", SHORT)
@pytest.mark.parametrize("count", [COUNT, FROM_STATE], ids=["of a slice", "of the state"])
def test_what_changes_its_shape_from_step_to_step_is_not_stacked(short: str, count: str) -> None:
    for way in ("g = Mul (k, v0)", "g = Neg (v)"):
        body = f"{count} {SHORT[short]} u = Neg (v) v0 = ReduceSum <keepdims = 0> (u) {way} y = ReduceSum <keepdims = 0> (g)"
        split(model(body))


def test_the_sum_of_what_changes_its_shape_is_stacked() -> None:
    body = f"{FROM_STATE} {SHORT['cut']} a = ReduceSum <keepdims = 0> (v) b = Exp (a) y = Tanh (b)"
    after, _ = split(model(body))
    assert body_ops(after) == sorted(["Tanh", "Add", "Greater", "Cast", "ReduceSum", "Slice", "ReduceSum"])


def test_two_parts_that_change_are_not_stacked_though_together_they_do_not() -> None:
    parts = "a = Slice (w, zero, n, zero) b = Slice (w, n, far, zero) e = Neg (a) v = Concat <axis = 0> (e, b)"
    split(model(f"{FROM_STATE} {parts} u = Sin (v) y = ReduceSum <keepdims = 0> (u)"))


def test_what_a_step_asks_the_size_of_decides_on_no_shape() -> None:
    body = "n = Shape (k) v = Expand (nought, n) a = Add (v, k) y = Exp (a)"
    after, _ = split(model(body, sums=False))
    assert body_ops(after) == ["Add", "Tanh"]


def test_sizes_that_are_declared_of_what_changes_prove_nothing() -> None:
    text = model(f"{FROM_STATE} v = Slice (w, zero, n, zero) u = Neg (v) y = ReduceSum <keepdims = 0> (u)")
    head, body = text.split("body: graph = body", 1)
    inner, rest = body.split(" {", 1)
    split(f"{head}body: graph = body{inner} <float[1] v, float[1] u> {{{rest}")
