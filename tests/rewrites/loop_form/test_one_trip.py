import numpy as np
import pytest

from rewrites.loop_form import one_trip
from rewrites.registry import RULES
from rewrites.repair import own_outputs
from tests.rewrites.apply import apply
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import becomes, loop, scan, stays
from tests.support.runtime import ort_run

ONE = {"given": "float[2] s, float[1,2] xs", "results": "float[2] z, float[1,2] ys"}
INSIDE = "h1 = Add (h, x) y = Tanh (h)"


@pytest.mark.parametrize(("opset", "axes"), [(9, "attribute"), (11, "attribute"), (13, "input"), (18, "input"), (25, "input")])
def test_a_scan_of_one_step_is_its_body(opset: int, axes: str) -> None:
    expected = {
        "attribute": "x = Squeeze <axes = [0]> (xs) z = Add (s, x) y = Tanh (s) ys = Unsqueeze <axes = [0]> (y)",
        "input": "x = Squeeze (xs, k) z = Add (s, x) y = Tanh (s) ys = Unsqueeze (y, k)",
    }
    weights = "<int64[1] k = {0}>" if axes == "input" else ""
    text = f"g (float[2] s, float[1,2] xs) => (float[2] z, float[1,2] ys) {weights} {{ {expected[axes]} }}"
    becomes(one_trip, scan(INSIDE, **ONE), text, opset=opset)


def test_axes_and_directions_are_kept() -> None:
    text = scan(
        INSIDE,
        attributes="num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1], scan_output_axes = [-1], "
        "scan_output_directions = [1]",
        given="float[2] s, float[2,1] xs",
        results="float[2] z, float[2,1] ys",
    )
    becomes(
        one_trip,
        text,
        """g (float[2] s, float[2,1] xs) => (float[2] z, float[2,1] ys) <int64[1] k = {1}> {
            x = Squeeze (xs, k)  z = Add (s, x)  y = Tanh (s)  ys = Unsqueeze (y, k) }""",
    )


@pytest.mark.parametrize(
    "outputs", ["float[2] h, float[2] h", "float[2] x, float[2] x", "float[2] h, float[2] x", "float[2] x, float[2] h"]
)
def test_what_is_returned_as_it_was_given_is_passed_on(outputs: str) -> None:
    becomes(one_trip, scan("", outputs=outputs, **ONE), on_ort=False)
    becomes([own_outputs, one_trip], scan("", outputs=outputs, **ONE), on_ort=False)


def test_states_that_change_places_do() -> None:
    text = scan(
        "",
        inputs="float[2] a, float[2] b, float[2] x",
        outputs="float[2] b, float[2] a",
        given="float[2] s, float[2] r, float[1,2] xs",
        operands="s, r, xs",
        outer="p, q",
        results="float[2] p, float[2] q",
    )
    becomes(
        one_trip,
        text,
        "g (float[2] s, float[2] r, float[1,2] xs) => (float[2] p, float[2] q) { p = Identity (r) q = Identity (s) }",
        on_ort=False,
    )


LOOP = loop("h1 = Add (h, h) y = Gather (xs, i)", steps=1)


@pytest.mark.parametrize("opset", [9, 13, 18, 25])
def test_a_loop_of_one_step_is_its_body(opset: int) -> None:
    after, _ = becomes(one_trip, LOOP, opset=opset)
    assert [node.op_type for node in after.graph.node] == ["Add", "Gather", "Unsqueeze"]


def test_the_condition_after_the_only_step_does_not_matter() -> None:
    text = loop("h1 = Add (h, h) y = Gather (xs, i)", steps=1, go_on="c1 = Not (c)")
    after, _ = becomes(one_trip, text)
    assert "Loop" not in [node.op_type for node in after.graph.node]


def test_the_condition_before_it_does() -> None:
    stays(one_trip, loop("h1 = Add (h, h) y = Gather (xs, i)", steps=1, condition="t", given="float[2] s, float[3,2] xs, bool t"))
    stays(one_trip, loop("h1 = Add (h, h) y = Gather (xs, i)", steps=1, condition="t", weights="bool t = {0}"))
    becomes(one_trip, loop("h1 = Add (h, h) y = Gather (xs, i)", steps=1, condition="t", weights="bool t = {1}"))


@pytest.mark.parametrize(("number", "stacked"), [("int64 i", "int64[1]"), ("int64[1] i", "int64[1,1]")])
def test_the_number_of_the_only_step_is_0(number: str, stacked: str) -> None:
    text = loop(
        "h1 = Add (h, h) n = Identity (i) e = Identity (c)",
        steps=1,
        outputs=f"float[2] h1, {number.replace(' i', ' n')}, bool e",
        outer="z, n0, e0",
        results=f"float[2] z, {stacked} n0, bool[1] e0",
    ).replace("int64 i,", f"{number},")
    after, _ = apply(text, [one_trip])
    assert "Loop" not in [node.op_type for node in after.graph.node]
    _, n, e = ort_run(after, data(after))
    assert (n.ravel().tolist(), e.tolist()) == ([0], [True])


def test_other_numbers_of_steps_stay() -> None:
    stays(one_trip, scan(INSIDE))
    stays(one_trip, scan(INSIDE, given="float[2] s, float[T,2] xs", results="float[2] z, float[T,2] ys"))
    for steps in (0, -1, 2, None):
        stays(one_trip, loop("h1 = Add (h, h) y = Gather (xs, i)", steps=steps))


def test_an_opset_8_scan_stays() -> None:
    text = scan(INSIDE, given="float[B,2] s, float[B,1,2] xs", operands=", s, xs", results="float[B,2] z, float[B,1,2] ys")
    stays(one_trip, text, "SCAN-8-STATE", opset=8)


def test_names_in_the_body_do_not_clash_with_names_outside() -> None:
    text = scan(
        "a = Add (h, x) h1 = Neg (a) y = Tanh (a)",
        given="float[2] h, float[1,2] x",
        operands="h, x",
        results="float[2] a, float[1,2] y, float[2] h1",
        outer="h1, y",
        after="a = Exp (h1)",
    )
    after, _ = becomes(one_trip, text, check=False)
    assert [info.name for info in after.graph.output] == ["a", "y", "h1"]


@pytest.mark.parametrize("kind", ["string", "bool", "float16", "double", "uint8"])
def test_every_type_may_be_scanned(kind: str) -> None:
    text = scan(
        "h1 = Identity (x) y = Identity (h)",
        inputs=f"{kind}[2] h, {kind}[2] x",
        outputs=f"{kind}[2] h1, {kind}[2] y",
        given=f"{kind}[2] s, {kind}[1,2] xs",
        results=f"{kind}[2] z, {kind}[1,2] ys",
    )
    becomes(one_trip, text)


def test_a_loop_in_the_body_comes_out_with_it() -> None:
    inner = "y = Scan <num_scan_inputs = 1, body = d (float g, float e) => (float g1) { g1 = Add (g, e) }> (k, x)"
    becomes(
        one_trip,
        scan(
            f"h1 = Add (h, x) {inner}",
            **ONE | {"results": "float[2] z, float[1] ys"},
            weights="float k = {2}",
            outputs="float[2] h1, float y",
        ),
    )


def test_a_branch_that_the_number_of_the_step_decides_comes_out_alone() -> None:
    branches = "then_branch = p () => (float[2] p1) { p1 = Exp (h) }, else_branch = q () => (float[2] q1) { q1 = Neg (h) }"
    text = loop(f"h1 = Add (h, h) late = Greater (i, three) y = If (late) <{branches}>", steps=1, weights="int64 three = {3}")
    after, _ = becomes(one_trip, text)
    assert [node.op_type for node in after.graph.node] == ["Add", "Neg", "Unsqueeze"]


def test_a_branch_that_data_decides_stays() -> None:
    branches = "then_branch = p () => (float[2] p1) { p1 = Exp (h) }, else_branch = q () => (float[2] q1) { q1 = Neg (h) }"
    text = loop(f"h1 = Add (h, h) y = If (t) <{branches}>", steps=1, given="float[2] s, float[3,2] xs, bool t")
    after, _ = becomes(one_trip, text)
    assert [node.op_type for node in after.graph.node] == ["Add", "If", "Unsqueeze"]


SEQUENCE = """<ir_version: 8, opset_import: ["": {opset}]>
    g (seq(float[2]) q0, float[2] s) => (seq(float[2]) q, float[2] z) <int64 m = {{1}}> {{
        q, z = Loop <body = b (int64 i, bool c, seq(float[2]) a, float[2] h) => (bool c1, seq(float[2]) a, float[2] h1) {{
            c1 = Identity (c)  e = SequenceAt (a, i)  h1 = Add (h, e)
        }}> (m, , q0, s) }}"""
FEEDS = {"q0": [np.ones(2, np.float32), np.zeros(2, np.float32)], "s": np.ones(2, np.float32)}


def test_a_sequence_given_and_returned_stays_where_no_identity_copies_it() -> None:
    stays(one_trip, SEQUENCE.format(opset=13), "LOOP-SEQUENCE", check=False)
    apply(SEQUENCE.format(opset=13), RULES, feeds=FEEDS, check=False)
    becomes(one_trip, SEQUENCE.format(opset=14), feeds=FEEDS, check=False)
