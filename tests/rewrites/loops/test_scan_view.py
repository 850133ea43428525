"""One view of all Scan dialects."""

import numpy as np
import onnx_ir as ir
import pytest

from rewrites.loops import ScanView, is_loop, view
from rewrites.registry import RULES
from tests.rewrites.apply import apply, one_loop, prepared

DIALECTS = (9, 11, 16, 19, 21, 23, 24, 25)

SCAN = """
g (float[2] s0, float[T,2] x, float[2,T,3] z) => (float[2] s, float[T,2] y, float[2,T,3] w) {
    s, y, w = Scan <num_scan_inputs = 2, scan_input_axes = [0, -2], scan_input_directions = [0, 1],
                    scan_output_axes = [0, 1], scan_output_directions = [1, 0],
                    body = step (float[2] h, float[2] xt, float[2,3] zt) => (float[2] h1, float[2] yt, float[2,3] wt) {
        h1 = Add (h, xt)
        yt = Tanh (h1)
        wt = Neg (zt)
    }> (s0, x, z)
}"""
SCAN_8 = """
g (int64[B] lens, float[B,2] s0, float[B,T,2] x, float[B,T] z) => (float[B,2] s, float[B,T,2] y) {
    s, y = Scan <num_scan_inputs = 2, directions = [0, 1],
                 body = step (float[2] h, float[2] xt, float zt) => (float[2] h1, float[2] yt) {
        h1 = Add (h, xt)
        yt = Mul (h1, zt)
    }> (lens, s0, x, z)
}"""
FEEDS = {
    "s0": np.array([0.1, 0.2], np.float32),
    "x": np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2),
    "z": np.arange(24, dtype=np.float32).reshape(2, 4, 3),
}
FEEDS_8 = {
    "lens": np.array([3, 1], np.int64),
    "s0": np.ones((2, 2), np.float32),
    "x": np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 3, 2),
    "z": np.arange(6, dtype=np.float32).reshape(2, 3),
}


def scan_of(text: str, opset: int = 18) -> ScanView:
    ctx = prepared(text, opset=opset)
    loop = view(one_loop(ctx), ctx.opset)
    assert isinstance(loop, ScanView)
    return loop


def name(value: ir.Value | None) -> str | None:
    return None if value is None else value.name


@pytest.mark.parametrize("opset", DIALECTS)
def test_the_parts_of_a_scan_are_tied_to_what_they_stand_for(opset: int) -> None:
    loop = scan_of(SCAN, opset)
    assert [(name(s.initial), name(s.inner), name(s.next), name(s.final)) for s in loop.states] == [("s0", "h", "h1", "s")]
    assert [(name(i.outer), name(i.inner), i.axis, i.reverse) for i in loop.scan_inputs] == [
        ("x", "xt", 0, False),
        ("z", "zt", 1, True),
    ]
    assert [(name(o.inner), name(o.outer), o.axis, o.reverse) for o in loop.scan_outputs] == [
        ("yt", "y", 0, True),
        ("wt", "w", 1, False),
    ]
    assert (loop.kind, loop.batched, loop.sequence_lens, loop.steps, loop.always_runs) == ("Scan", False, None, "T", True)


@pytest.mark.parametrize("opset", DIALECTS)
def test_every_dialect_means_the_same_after_all_rules(opset: int) -> None:
    apply(SCAN, RULES, opset=opset, feeds=FEEDS)


def test_an_opset_8_scan_has_a_batch_axis_and_lengths() -> None:
    loop = scan_of(SCAN_8, 8)
    assert loop.batched
    assert name(loop.sequence_lens) == "lens"
    assert [(name(s.initial), name(s.final)) for s in loop.states] == [("s0", "s")]
    assert [(name(i.outer), i.axis, i.reverse) for i in loop.scan_inputs] == [("x", 1, False), ("z", 1, True)]
    assert [(name(o.outer), o.axis, o.reverse) for o in loop.scan_outputs] == [("y", 1, False)]
    assert loop.steps == "T"
    assert not loop.always_runs


def test_an_opset_8_scan_may_leave_the_lengths_out() -> None:
    loop = scan_of(SCAN_8.replace("int64[B] lens, ", "").replace("(lens,", "(,"), 8)
    assert loop.sequence_lens is None
    assert len(loop.states) == 1


def test_an_opset_8_scan_means_the_same_after_all_rules() -> None:
    apply(SCAN_8, RULES, opset=8, feeds=FEEDS_8)


def test_a_negative_axis_stays_as_written_where_the_rank_is_not_known() -> None:
    text = """
    g (float[A,B] x) => (float[A,B] y) {
        y = Scan <num_scan_inputs = 1, scan_input_axes = [-1], scan_output_axes = [-1],
                  body = b (xt) => (yt) { yt = Neg (xt) }> (x)
    }"""
    ctx = prepared(text)
    node = one_loop(ctx)
    for value in (*node.inputs, *node.outputs, *view(node, 18).body.outputs):
        if value is not None:
            value.shape = None
    loop = view(node, 18)
    assert [part.axis for part in (*loop.scan_inputs, *loop.scan_outputs)] == [-1, -1]


@pytest.mark.parametrize(
    ("first", "second", "steps"), [("T", "4", 4), ("4", "T", 4), ("T", "S", "T"), ("4", "4", 4)], ids=["a", "b", "c", "d"]
)
def test_the_trip_count_is_a_number_if_any_scan_input_tells_it(first: str, second: str, steps: int | str) -> None:
    text = f"""
    g (float[{first},2] a, float[{second},2] b) => (float[N,2] y) {{
        y = Scan <num_scan_inputs = 2, body = step (float[2] p, float[2] q) => (float[2] r) {{ r = Add (p, q) }}> (a, b)
    }}"""
    assert scan_of(text).steps == steps


def test_a_scan_without_states_and_one_with_states_only_are_read() -> None:
    no_state = scan_of("""g (float[T] x) => (float[T] y) {
        y = Scan <num_scan_inputs = 1, body = b (float a) => (float c) { c = Neg (a) }> (x) }""")
    assert (len(no_state.states), len(no_state.scan_outputs)) == (0, 1)
    only_state = scan_of("""g (float s, float[T] x) => (float y) {
        y = Scan <num_scan_inputs = 1, body = b (float h, float a) => (float c) { c = Add (h, a) }> (s, x) }""")
    assert (len(only_state.states), len(only_state.scan_outputs)) == (1, 0)


def test_a_node_of_another_domain_is_no_loop() -> None:
    assert not is_loop(ir.Node("custom", "Scan", []))
    assert is_loop(ir.Node("ai.onnx", "Scan", []))
    assert is_loop(ir.Node("", "Loop", []))
    assert not is_loop(ir.Node("", "If", []))
