"""One view of all versions of Loop."""

import numpy as np
import onnx_ir as ir
import pytest

from rewrites.loops import LoopView, view
from rewrites.registry import RULES
from tests.rewrites.apply import apply, one_loop, prepared

VERSIONS = (7, 11, 13, 16, 19, 21, 23, 24, 25)

LOOP = """
g (int64 m, bool c, float[2] s0, float[4,2] x) => (float[2] s, float[N,2] y) {
    s, y = Loop <body = step (int64 i, bool c_in, float[2] h) => (bool c_out, float[2] h1, float[2] yt) {
        c_out = Identity (c_in)
        xt = Gather (x, i)
        h1 = Add (h, xt)
        yt = Tanh (h1)
    }> (m, c, s0)
}"""
FEEDS = {
    "m": np.array(3),
    "c": np.array(True),
    "s0": np.array([0.1, 0.2], np.float32),
    "x": np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2),
}


def loop_of(text: str, opset: int = 18) -> LoopView:
    ctx = prepared(text, opset=opset)
    loop = view(one_loop(ctx), ctx.opset)
    assert isinstance(loop, LoopView)
    return loop


def name(value: ir.Value | None) -> str | None:
    return None if value is None else value.name


@pytest.mark.parametrize("opset", VERSIONS)
def test_the_parts_of_a_loop_are_tied_to_what_they_stand_for(opset: int) -> None:
    loop = loop_of(LOOP, opset)
    assert [(name(s.initial), name(s.inner), name(s.next), name(s.final)) for s in loop.states] == [("s0", "h", "h1", "s")]
    assert [(name(o.inner), name(o.outer), o.axis, o.reverse) for o in loop.scan_outputs] == [("yt", "y", 0, False)]
    assert (name(loop.limit), name(loop.condition)) == ("m", "c")
    assert (name(loop.iteration), name(loop.condition_in), name(loop.condition_out)) == ("i", "c_in", "c_out")
    assert (loop.kind, loop.batched, loop.scan_inputs, loop.sequence_lens) == ("Loop", False, (), None)


@pytest.mark.parametrize("opset", VERSIONS)
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_every_version_means_the_same_after_all_rules(opset: int, steps: int) -> None:
    apply(LOOP, RULES, opset=opset, feeds=FEEDS | {"m": np.array(steps)})


@pytest.mark.parametrize("opset", VERSIONS[1:])
@pytest.mark.parametrize("steps", [-1, 0, 1, 3])
def test_every_version_with_a_constant_trip_count_means_the_same_after_all_rules(opset: int, steps: int) -> None:
    text = (
        LOOP.replace("int64 m, bool c, ", "").replace("(m, c, s0)", "(m, , s0)").replace("y) {", f"y) <int64 m = {{{steps}}}> {{")
    )
    apply(text, RULES, opset=opset, feeds={key: FEEDS[key] for key in ("s0", "x")})


CASES = {
    # limit, condition, condition out; steps, never_stops_early, always_runs
    "constant": ("m = Constant <value_int = 3> ()", "c_out = Identity (c_in)", "m, , s0", 3, True, True),
    "one element": ("m = Constant <value_ints = [3]> ()", "c_out = Identity (c_in)", "m, , s0", 3, True, True),
    "zero": ("m = Constant <value_int = 0> ()", "c_out = Identity (c_in)", "m, , s0", 0, True, False),
    "negative": ("m = Constant <value_int = -2> ()", "c_out = Identity (c_in)", "m, , s0", 0, True, False),
    "true": (
        "m = Constant <value_int = 3> () c = Constant <value = bool {1}> ()",
        "c_out = Identity (c_in)",
        "m, c, s0",
        3,
        True,
        True,
    ),
    "false": (
        "m = Constant <value_int = 3> () c = Constant <value = bool {0}> ()",
        "c_out = Identity (c_in)",
        "m, c, s0",
        None,
        False,
        False,
    ),
    "computed": (
        "m = Constant <value_int = 3> ()",
        "k = Constant <value_int = 1> () c_out = Less (i, k)",
        "m, , s0",
        None,
        False,
        True,
    ),
    "constant false inside": (
        "m = Constant <value_int = 3> ()",
        "c_out = Constant <value = bool {0}> ()",
        "m, , s0",
        None,
        False,
        True,
    ),
    "constant true inside": (
        "m = Constant <value_int = 3> ()",
        "t = Constant <value = bool {1}> () c_out = Identity (t)",
        "m, , s0",
        3,
        True,
        True,
    ),
    "no limit": ("", "k = Constant <value_int = 1> () c_out = Less (i, k)", ", , s0", None, False, True),
    "fed": ("m = Identity (mm)", "c_out = Identity (c_in)", "m, , s0", None, True, False),
    "fed condition": ("m = Constant <value_int = 3> ()", "c_out = Identity (c_in)", "m, cc, s0", None, False, False),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_known_of_the_number_of_steps(case: str) -> None:
    before, inside, operands, steps, endless, runs = CASES[case]
    text = f"""
    g (int64 mm, bool cc, float s0) => (float s) {{
        {before}
        s = Loop <body = step (int64 i, bool c_in, float h) => (bool c_out, float h1) {{ {inside} h1 = Add (h, h) }}> ({operands})
    }}"""
    loop = loop_of(text)
    assert (loop.steps, loop.never_stops_early, loop.always_runs) == (steps, endless, runs)
    apply(text, RULES, feeds={"mm": np.array(2), "cc": np.array(True), "s0": np.array(0.5, np.float32)})


def test_a_trip_count_that_can_be_fed_is_not_known() -> None:
    text = LOOP.replace("y) {", "y) <int64 m = {3}> {")
    loop = loop_of(text)
    assert loop.steps is None
    assert not loop.always_runs
    apply(text, RULES, feeds=FEEDS | {"m": np.array(2)})


def test_a_loop_without_states_is_read() -> None:
    loop = loop_of("""
    g (int64 m, bool go, float[2] x) => (float[N,2] y) {
        y = Loop <body = b (int64 i, bool c) => (bool c1, float[2] yt) { c1 = Identity (c) yt = Neg (x) }> (m, go)
    }""")
    assert (loop.states, len(loop.scan_outputs)) == ((), 1)


def test_sequences_can_be_states() -> None:
    text = """
    g (int64 m, float[2] x) => (float[N] y) {
        e = SequenceEmpty <dtype = 1> ()
        z = Loop <body = b (int64 i, bool c, seq(float[2]) q) => (bool c1, seq(float[2]) q1) {
            c1 = Identity (c)
            f = Cast <to = 1> (i)
            a = Mul (x, f)
            q1 = SequenceInsert (q, a)
        }> (m, , e)
        y = ConcatFromSequence <axis = 0> (z)
    }"""
    assert len(loop_of(text).states) == 1
    apply(text, RULES, feeds={"m": np.array(3), "x": np.ones(2, np.float32)})
