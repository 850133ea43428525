import numpy as np
import onnx
import pytest

from rewrites.cleanup import dead_code
from rewrites.loop_form import loop_to_scan, trip_count
from tests.rewrites.apply import apply, read
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import becomes, loop, scan, stays

INSIDE = "h1 = Add (h, h) y = Tanh (h)"
CONSTANTS = "int64 one = {1}, int64 two = {2}, int64 five = {5}, int64 huge = {9223372036854775807}, int32 one_ = {1}, int32 five_ = {5}, float five__ = {5}"


def counting(go_on: str, **changes) -> str:
    return loop(INSIDE, go_on=go_on, **{"weights": CONSTANTS, **changes})


def counted(after: str, start: int = 0) -> str:
    """A loop with a counter `k` beside its state, `k1` after it."""
    return loop(
        f"{INSIDE} k1 = {after}",
        go_on="",
        steps=1 << 62,
        inputs="float[2] h, int64 k",
        outputs="float[2] h1, int64 k1, float[2] y",
        operands="s, k0",
        outer="z, n, ys",
        results="float[2] z, int64 n, float[N,2] ys",
        weights=f"{CONSTANTS}, int64 k0 = {{{start}}}",
    )


def test_a_bound_in_the_condition_becomes_the_trip_count() -> None:
    becomes(
        [trip_count, dead_code],
        counting("j = Add (i, one) c1 = Less (j, five)", steps=1 << 62),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[N,2] ys) <int64 n = {5}, bool t = {1}> {
            z, ys = Loop <body = b (i, c, h) => (c1, h1, y) { c1 = Identity (c)  h1 = Add (h, h)  y = Tanh (h) }> (n, t, s) }""",
    )


COUNTS = {
    "c1 = Less (i, five)": 6,
    "c1 = LessOrEqual (i, five)": 7,
    "c1 = Greater (five, i)": 6,
    "j = Add (i, one) c1 = GreaterOrEqual (five, j)": 6,
    "j = Mul (i, two) c1 = Less (j, five)": 4,
    "j = Sub (five, i) c1 = Greater (j, two)": 4,
    "g = GreaterOrEqual (i, five) c1 = Not (g)": 6,
    "a = Less (i, five) d = Less (i, two) c1 = And (a, d)": 3,
    "a = Less (i, five) c1 = And (a, c)": 6,
    "f = Cast <to = 1> (i) c1 = Less (f, five__)": 6,
    "f = Cast <to = 1> (i) g = Add (f, f) c1 = Less (g, five__)": 4,
    "c1 = Less (i, i0) i0 = Neg (five)": 1,
}


@pytest.mark.parametrize("go_on", COUNTS)
def test_every_spelling_of_a_bound_counts(go_on: str) -> None:
    parts = go_on.split(" i0 = ")
    text = counting(f"i0 = {parts[1]} {parts[0]}" if len(parts) > 1 else go_on, steps=1 << 62)
    after, _ = becomes(trip_count, text)
    assert limit_of(after) == COUNTS[go_on]


def limit_of(model: onnx.ModelProto) -> int:
    (node,) = [node for node in model.graph.node if node.op_type == "Loop"]
    limit = next(tensor for tensor in model.graph.initializer if tensor.name == node.input[0])
    return int(onnx.numpy_helper.to_array(limit))


@pytest.mark.parametrize(("limit", "steps"), [(3, 3), (9, 6), (-1, 0)])
def test_the_lesser_of_trip_count_and_bound_counts(limit: int, steps: int) -> None:
    after, _ = becomes(trip_count, counting("c1 = Less (i, five)", steps=limit))
    assert limit_of(after) == steps


@pytest.mark.parametrize(("start", "after", "steps"), [(0, "Add (k, one)", 5), (3, "Add (k, one)", 2), (1, "Add (k, two)", 2)])
def test_a_carried_counter_counts(start: int, after: str, steps: int) -> None:
    text = counted(f"{after} c1 = Less (k1, five)", start=start)
    model, _ = becomes(trip_count, text)
    assert limit_of(model) == steps
    becomes([trip_count, loop_to_scan], text)


FED = {"given": "float[2] s, float[3,2] xs, int64 n"}


@pytest.mark.parametrize("n", [-2, 0, 1, 2, 5])
@pytest.mark.parametrize(
    "text",
    [
        counting("j = Add (i, one) c1 = Less (j, n)", steps=1 << 62, before="t = Less (zero, n)", condition="t", **FED),
        counting("j = Add (i, one) c1 = Less (j, n)", steps=1 << 62, **FED),
        counting("c1 = Less (i, n)", steps=3, condition="t", before="t = Less (n, five)", **FED),
        counting("j = Mul (i, two) c1 = Less (j, n)", steps=1 << 62, before="t = Less (zero, n)", condition="t", **FED),
        counting("j = Add (i, one) a = Less (j, n) d = Less (i, two) c1 = And (a, d)", steps=1 << 62, **FED),
        counting("c1 = Identity (c)", steps=3, condition="t", before="t = Equal (n, two)", **FED),
        counting("j = Add (i, one) f = Cast <to = 1> (j) c1 = Less (f, e)", steps=1 << 62, before="e = Cast <to = 1> (n)", **FED),
    ],
    ids=["from zero", "once at least", "and a limit", "by two", "and another", "started or not", "in floats"],
)
def test_a_bound_that_is_fed_is_counted_before_the_loop(text: str, n: int) -> None:
    text = text.replace("int64 one =", "int64 zero = {0}, int64 one =")
    feeds = {**data(read(text), n=1), "n": np.array(n)}
    becomes(trip_count, text, feeds=feeds)
    becomes([trip_count, loop_to_scan], text, feeds=feeds)


def test_a_bound_that_says_what_the_limit_says_is_left_out() -> None:
    text = counting("j = Add (i, one) c1 = Less (j, m)", steps=None, before="t = Less (zero, m)", condition="t")
    after, _ = apply(text.replace("int64 one =", "int64 zero = {0}, int64 one ="), [trip_count, dead_code])
    assert [node.op_type for node in after.graph.node] == ["Loop"]
    assert after.graph.node[0].input[0] == "m"


def test_counting_in_floats_is_noted_where_the_bound_is_not_known() -> None:
    text = counting("f = Cast <to = 1> (i) c1 = Less (f, e)", steps=1 << 62, before="e = Cast <to = 1> (n)", **FED)
    _, report = apply(text, [trip_count])
    assert "exact, which holds up to 16777216" in report.loops[0].notes[0]


SETTLED = "r = ReduceMax <keepdims = 0> (h1) go = Less (r, five__)"


def test_a_bound_beside_another_condition_becomes_the_trip_count() -> None:
    becomes(
        [trip_count, dead_code],
        loop(f"{INSIDE} {SETTLED} a = Less (i, five) c1 = And (a, go)", go_on="", steps=1 << 62, weights=CONSTANTS),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[N,2] ys) <int64 n = {6}, float five__ = {5}> {
            z, ys = Loop <body = b (i, c, h) => (c1, h1, y) {
                h1 = Add (h, h)  y = Tanh (h)  r = ReduceMax <keepdims = 0> (h1)  go = Less (r, five__)  c1 = Identity (go)
            }> (n, , s) }""",
        feeds={"s": np.array([0.5, 0.4], np.float32), "xs": np.zeros((3, 2), np.float32)},
    )


@pytest.mark.parametrize("start", [0.01, 1, 9])
@pytest.mark.parametrize(
    "go_on",
    [
        "a = Less (i, five) b = And (a, go) w = Reshape (b, zeros) d = And (c, w) c1 = Reshape (d, none)",
        "a = Less (i, five) b = LessOrEqual (i, two) w = And (a, b) d = And (go, w) g = Less (r, most) c1 = And (g, d)",
    ],
)
def test_the_other_conditions_still_end_the_loop(go_on: str, start: float) -> None:
    weights = f"{CONSTANTS}, int64[1] zeros = {{1}}, int64[0] none = {{}}, float most = {{100}}"
    text = loop(f"{INSIDE} {SETTLED} {go_on}", go_on="", steps=1 << 62, weights=weights)
    becomes(trip_count, text, feeds={"s": np.array([start, 0], np.float32), "xs": np.zeros((3, 2), np.float32)})


@pytest.mark.parametrize("bound", ["a = Less (i, n)", "j = Neg (i) a = Less (j, five)", "a = Less (i, five) go = Less (i, n)"])
def test_a_bound_that_is_not_known_stays_beside_another_condition(bound: str) -> None:
    other = "" if "go =" in bound else SETTLED
    stays(
        trip_count,
        loop(
            f"{INSIDE} {other} {bound} e = Or (go, c) c1 = And (a, e)", go_on="", steps=None, weights=CONSTANTS, given=FED["given"]
        ),
    )


UNCOUNTED = {
    "a state": "f = ReduceSum <keepdims = 0> (h) c1 = Less (f, five__)",
    "a fed bound that changes": "f = Cast <to = 7> (h) k = ReduceMax <keepdims = 0> (f) c1 = Less (i, k)",
    "or": "a = Less (i, five) d = Less (i, two) c1 = Or (a, d)",
    "never false": "j = Neg (i) c1 = Less (j, five)",
    "not monotone": "j = Mod (i, two) c1 = Less (j, one)",
    "the square": "j = Mul (i, i) c1 = Less (j, five)",
    "half floats": "f = Cast <to = 10> (i) e = Cast <to = 10> (n) c1 = Less (f, e)",
    "too far for floats": "f = Cast <to = 1> (i) e = Cast <to = 1> (far) c1 = Less (f, e)",
    "a vector": "v = Unsqueeze (i, zeros) w = Expand (v, fives) a = Less (w, five) e = Cast <to = 6> (a) r = ReduceMin <keepdims = 0> (e) c1 = Cast <to = 9> (r)",
}


@pytest.mark.parametrize("case", UNCOUNTED)
def test_a_condition_that_does_more_than_count_steps_stays(case: str) -> None:
    text = counting(UNCOUNTED[case], steps=1 << 62, **FED).replace(
        "int64 one =", "int64 far = {20000000}, int64[1] zeros = {0}, int64[1] fives = {5}, int64 one ="
    )
    _, report = apply(text, [trip_count])
    assert report.patches == []
    stays(loop_to_scan, text, "LOOP-CONDITION")


def test_a_condition_that_is_constant_is_no_concern_here() -> None:
    stays(trip_count, counting("c1 = Identity (c)"))
    stays(trip_count, scan("h1 = Add (h, x) y = Tanh (h)"))


def test_a_counter_that_another_state_moves_does_not_count() -> None:
    moving = "Add (k, w) c1 = Less (k1, five)"
    text = counted(moving).replace(INSIDE, f"{INSIDE} u = ReduceMax <keepdims = 0> (h) w = Cast <to = 7> (u)")
    stays(trip_count, text)
