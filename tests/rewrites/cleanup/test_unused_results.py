import numpy as np
import onnx
import onnx_ir as ir
import pytest

from rewrites.cleanup import pass_through_states, unused_results
from tests.rewrites.harness import becomes, loop, scan, stays

INSIDE = "h1 = Add (h, x) y = Tanh (h)"


@pytest.mark.parametrize("opset", [9, 13, 18, 25])
def test_a_scan_output_nobody_reads_goes_with_its_work(opset: int) -> None:
    becomes(
        unused_results,
        scan(INSIDE, results="float[2] r", after="r = Neg (z)"),
        """g (float[2] s, float[3,2] xs) => (float[2] r) {
            z = Scan <num_scan_inputs = 1, body = b (h, x) => (h1) { h1 = Add (h, x) }> (s, xs)
            r = Neg (z) }""",
        opset=opset,
    )


def test_a_state_that_only_itself_reads_goes() -> None:
    text = scan("h1 = Add (h, x) y = Tanh (x)", results="float[3,2] r", after="r = Neg (ys)")
    becomes(
        unused_results,
        text,
        """g (float[2] s, float[3,2] xs) => (float[3,2] r) {
            ys = Scan <num_scan_inputs = 1, body = b (x) => (y) { y = Tanh (x) }> (xs)
            r = Neg (ys) }""",
    )


def test_a_state_that_a_needed_one_reads_stays() -> None:
    text = scan(
        "a1 = Add (a, x) b1 = Add (b, a) d1 = Mul (d, b)",
        inputs="float[2] a, float[2] b, float[2] d, float[2] x",
        outputs="float[2] a1, float[2] b1, float[2] d1",
        operands="s, s, s, xs",
        outer="aT, bT, dT",
        results="float[2] bT",
    )
    becomes(
        unused_results,
        text,
        """g (float[2] s, float[3,2] xs) => (float[2] bT) {
            aT, bT = Scan <num_scan_inputs = 1, body = b (a, b, x) => (a1, b1) { a1 = Add (a, x)  b1 = Add (b, a) }> (s, s, xs) }""",
    )
    stays(unused_results, text.replace("=> (float[2] bT)", "=> (float[2] dT)"))


def test_a_result_read_in_a_branch_only_is_read() -> None:
    branches = "then_branch = p () => (float[2] u) { u = Neg (z) }, else_branch = q () => (float[2] v) { v = Abs (s) }"
    text = scan(INSIDE, given="float[2] s, float[3,2] xs, bool t", results="float[2] r", after=f"r = If (t) <{branches}>")
    after, _ = becomes(unused_results, text)
    assert [list(node.output) for node in after.graph.node if node.op_type == "Scan"] == [["z"]]


def test_a_state_read_in_a_branch_of_the_body_only_is_read() -> None:
    branches = "then_branch = p () => (float[2] u) { u = Neg (h) }, else_branch = q () => (float[2] v) { v = Abs (x) }"
    given = "float[2] s, float[3,2] xs, bool t"
    stays(unused_results, scan(f"h1 = Add (h, x) y = If (t) <{branches}>", given=given, results="float[3,2] ys"))


def test_a_loop_nobody_reads_goes() -> None:
    expected = "g (float[2] s, float[3,2] xs) => (float[2] r) { r = Neg (s) }"
    _, report = becomes(unused_results, scan(INSIDE, results="float[2] r", after="r = Neg (s)"), expected)
    assert (report.loops[0].fate, report.loops[0].nodes_after, report.loops[0].reasons) == ("removed", 0, [])
    becomes(unused_results, loop("h1 = Add (h, h) y = Tanh (h)", results="float[2] r", after="r = Neg (s)"), expected)


COUNTED = "two = Constant <value_int = 2> () c1 = Less (i, two)"


def test_a_loop_nobody_reads_goes_whatever_ends_it() -> None:
    text = loop("h1 = Add (h, h) y = Tanh (h)", results="float[2] r", after="r = Neg (s)", go_on=COUNTED)
    becomes(unused_results, text, "g (float[2] s, float[3,2] xs) => (float[2] r) { r = Neg (s) }")


def test_a_loop_nobody_reads_goes_from_a_branch_too() -> None:
    body = f"b (int64 i, bool c, float[2] a) => (bool c1, float[2] a1) {{ {COUNTED} a1 = Identity (a) }}"
    branches = (
        f"then_branch = p () => (float[2] u) {{ dead = Loop <body = {body}> (m, , h) u = Add (h, x) }}, "
        "else_branch = q () => (float[2] v) { v = Abs (x) }"
    )
    text = scan(f"h1 = Add (h, x) y = If (t) <{branches}>", given="float[2] s, float[3,2] xs, bool t, int64 m")
    feeds = {"t": np.array(True), "m": np.array(3)}
    for rules in (unused_results, pass_through_states):
        after, _ = becomes(rules, text, feeds=feeds)
        assert "Loop" not in operators(after)


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in ir.from_proto(model).graph.all_nodes()]


@pytest.mark.parametrize(("opset", "left"), [(10, 1), (11, 0)])
def test_a_loop_keeps_a_state_where_the_operator_needs_one(opset: int, left: int) -> None:
    text = loop(
        "h1 = Add (h, h) k1 = Tanh (k) y = Gather (xs, i)",
        inputs="float[2] h, float[2] k",
        outputs="float[2] h1, float[2] k1, float[2] y",
        operands="s, s",
        outer="z, w, ys",
        results="float[N,2] ys",
    )
    after, _ = becomes(unused_results, text, opset=opset)
    (node,) = after.graph.node
    assert len(node.input) == 2 + left


def test_a_state_that_decides_a_loops_condition_stays() -> None:
    text = loop(
        "h1 = Add (h, h) y = Gather (xs, i)",
        go_on="a = ReduceSum <keepdims = 0> (h) c1 = Less (a, most)",
        results="float[N,2] ys",
        weights="float most = {5}",
        steps=9,
    )
    stays(unused_results, text)
    becomes(unused_results, text.replace("=> (float[N,2] ys)", "=> (float[2] z)"), feeds={"s": np.ones(2, np.float32)})


def test_a_state_stays_that_something_reads_which_may_fail_where_a_condition_may_not_be_one_element() -> None:
    def text(limit: str) -> str:
        given, few = f"{limit} limit, float s, float[2] t", "h1 = Add (h, h) a1 = Neg (a) d = Add (a, t)"
        states = {"inputs": "float h, float[2] a", "outputs": "float h1, float[2] a1", "operands": "s, t", "outer": "z, w"}
        body = loop(few, go_on="c1 = Less (h, limit)", given=given, results="float z", **states)
        return body.replace("bool c1,", "c1,")

    stays(unused_results, text("float[N]"))
    after, _ = becomes(unused_results, text("float"), feeds={"limit": np.array(9, np.float32)})
    assert len(after.graph.node[0].input) == 3


def test_a_loop_keeps_its_condition_when_a_result_goes() -> None:
    becomes(
        unused_results,
        loop("h1 = Add (h, h) y = Tanh (h)", results="float[2] z"),
        """g (float[2] s, float[3,2] xs) => (float[2] z) <int64 m = {3}> {
            z = Loop <body = b (i, c, h) => (c1, h1) { c1 = Identity (c)  h1 = Add (h, h) }> (m, , s) }""",
    )


def test_results_of_an_opset_8_scan_go_too() -> None:
    text = scan(INSIDE, given="int64[B] lens, float[B,2] s, float[B,T,2] xs", operands="lens, s, xs", results="float[B,2] z")
    after, _ = becomes(unused_results, text, opset=8, feeds={"lens": np.array([1, 4, 2, 3])})
    assert [list(node.output) for node in after.graph.node] == [["z"]]


def test_everything_read_stays() -> None:
    stays(unused_results, scan(INSIDE))
    stays(unused_results, loop("h1 = Add (h, h) y = Tanh (h)"))
