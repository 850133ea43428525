import numpy as np
import pytest

from rewrites.cleanup import dead_code
from rewrites.loop_form import induction_states, loop_to_scan
from tests.rewrites.apply import apply, read
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import becomes, loop, scan, stays


def counting(
    after: str, *, kind: str = "int64", start: str = "0", inside: str = "", use: str = "x = Gather (xs, k)", **changes
) -> str:
    dtype = kind.partition("[")[0]
    return loop(
        f"{inside} k1 = {after} {use} h1 = Add (h, x) y = Tanh (h)",
        inputs=f"float[2] h, {kind} k",
        outputs=f"float[2] h1, {kind} k1, float[2] y",
        operands="s, k0",
        outer="z, n, ys",
        **{
            "results": f"float[2] z, {kind} n, float[N,2] ys",
            "weights": f"{kind} k0 = {{{start}}}, {dtype} one = {{1}}, {dtype} two = {{2}}, int64[1] axis = {{0}}",
            **changes,
        },
    )


def test_a_counter_is_made_of_the_number_of_the_step() -> None:
    becomes(
        [induction_states, dead_code],
        counting("Add (k, one)", results="float[2] z, float[N,2] ys"),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[N,2] ys) <int64 m = {3}> {
            z, ys = Loop <body = b (i, c, h) => (c1, h1, y) {
                c1 = Identity (c)  x = Gather (xs, i)  h1 = Add (h, x)  y = Tanh (h)
            }> (m, , s) }""",
    )


COUNTERS = {
    "twos": counting("Add (k, two)", given="float[2] s, float[9,2] xs"),
    "down": counting("Sub (k, one)", start="2"),
    "from a place on": counting("Add (one, k)", start="4", given="float[2] s, float[9,2] xs"),
    "one element": counting("Add (k, one)", kind="int64[1]", use="v = Gather (xs, k) x = Squeeze (v, axis)"),
    "short": counting("Add (k, one)", kind="int32"),
    "short and one element": counting("Add (k, two)", kind="int32[1]", use="v = Cast <to = 1> (k) x = Add (h, v)"),
    "the number of the step": counting("Add (i, one)"),
    "twice the number": counting("Add (j, two)", inside="j = Mul (i, two)", given="float[2] s, float[9,2] xs"),
    "in floats": counting("Cast <to = 7> (g)", inside="f = Cast <to = 1> (k) e = Cast <to = 1> (one) g = Add (f, e)"),
}


@pytest.mark.parametrize("case", COUNTERS)
def test_every_counter_keeps_its_numbers_and_its_last_value(case: str) -> None:
    after, _ = becomes(induction_states, COUNTERS[case])
    assert len(after.graph.node[-1].input if after.graph.node[-1].op_type == "Loop" else after.graph.node[0].input) == 3
    becomes([induction_states, loop_to_scan], COUNTERS[case])


@pytest.mark.parametrize("steps", [-1, 0, 1, 3])
@pytest.mark.parametrize("case", ["Add (k, one)", "Add (k, two)", "Sub (k, one)"])
def test_the_last_value_is_right_for_any_number_of_steps(case: str, steps: int) -> None:
    text = counting(case, steps=None, start="2", given="float[2] s, float[9,2] xs")
    feeds = {**data(read(text), m=1), "m": np.array(steps)}
    becomes(induction_states, text, feeds=feeds)
    fed = text.replace("int64 k0 = {2}, ", "").replace("int64 m)", "int64 m, int64 k0)")
    becomes(induction_states, fed, feeds={**feeds, "k0": np.array(4)})


STAYING = {
    "by what is fed": counting("Add (k, w)", given="float[2] s, float[3,2] xs, int64 w"),
    "by itself": counting("Add (k, k)"),
    "with another start than the number of the step": counting("Add (i, one)", start="1"),
    "a vector": counting("Add (k, one)", kind="int64[2]", start="0, 0", use="x = Cast <to = 1> (k)"),
    "by halves": counting("Add (k, one)", kind="float", use="x = Add (h, k)").replace("float one = {1}", "float one = {0.5}"),
    "a float, for ever": counting("Add (k, one)", kind="float", use="x = Add (h, k)", steps=None),
    "a float from where it stands still": counting("Add (k, one)", kind="float", start="16777216", use="x = Add (h, k)"),
    "a float by large steps": counting("Add (k, one)", kind="float", use="x = Add (h, k)").replace(
        "float one = {1}", "float one = {1001}"
    ),
    "never": counting("Identity (k)"),
    "in half floats too far": counting(
        "Cast <to = 7> (g)",
        inside="f = Cast <to = 10> (k) e = Cast <to = 10> (one) g = Add (f, e)",
        steps=3000,
        use="x = Cast <to = 1> (k)",
    ),
    "in floats for ever": counting(
        "Cast <to = 7> (g)", inside="f = Cast <to = 1> (k) e = Cast <to = 1> (one) g = Add (f, e)", steps=None
    ),
}


@pytest.mark.parametrize("case", STAYING)
def test_what_does_not_count_evenly_stays(case: str) -> None:
    stays(induction_states, STAYING[case])


def test_a_float_counts_too() -> None:
    after, report = apply(counting("Add (k, one)", kind="float", use="x = Add (h, k)"), [induction_states])
    (left,) = (node for node in after.graph.node if node.op_type == "Loop")
    assert len(left.input) == 3
    assert [fired.rule for fired in report.loops[0].fired] == ["induction-states"]


def test_the_last_value_of_a_loop_that_stops_early_stays_a_state() -> None:
    text = counting("Add (k, one)", go_on="f = ReduceSum <keepdims = 0> (h) o = Cast <to = 9> (f) c1 = Not (o)")
    stays(induction_states, text)
    after, _ = apply(text.replace("int64 n, ", ""), [induction_states], feeds=data(read(text.replace("int64 n, ", ""))))
    assert len(after.graph.node[0].input) == 3


def test_a_scan_is_left_alone() -> None:
    stays(induction_states, scan("h1 = Add (h, x) y = Tanh (h)"))
