"""Malformed loops are refused in one sentence; onnxruntime refuses each of them too. What it runs is never refused."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest

from rewrites.base.errors import MalformedLoop
from rewrites.driver.engine import rewrite
from rewrites.driver.prepare import prepare
from rewrites.registry import RULES
from rewrites.repair import own_outputs
from tests.rewrites.apply import apply, context_of, read
from tests.support.runtime import ort_run
from tests.support.text import normalised

STEP = "b (float[2] h, float[2] xt) => (float[2] h1, float[2] yt) { h1 = Add (h, xt) yt = Tanh (h1) }"
TURN = "b (int64 i, bool c, float[2] h) => (bool c1, float[2] h1, float[2] yt) { c1 = Identity (c) h1 = Add (h, h) yt = Neg (h) }"
SCAN_FEEDS = {"s": np.array([1, 2], np.float32), "x": np.arange(6, dtype=np.float32).reshape(3, 2)}
SCAN_8_FEEDS = {key: array[None] for key, array in SCAN_FEEDS.items()}
LOOP_FEEDS = {"m": np.array(3), "c": np.array(True), "s": SCAN_FEEDS["s"]}


def scan(attributes: str = "num_scan_inputs = 1", body: str = STEP, operands: str = "s, x", results: str = "z, y") -> str:
    body = f"body = {body}" if body else ""
    listed = ", ".join(part for part in (attributes, body) if part)
    return f"g (float[2] s, float[3,2] x) => (float[2] z, float[3,2] y) {{ {results} = Scan <{listed}> ({operands}) }}"


def scan_8(attributes: str = "num_scan_inputs = 1", operands: str = ", s, x") -> str:
    return f"""g (float[1,2] s, float[1,3,2] x) => (float[1,2] z, float[1,3,2] y) {{
        z, y = Scan <{attributes}, body = {STEP}> ({operands}) }}"""


def loop(body: str = TURN, operands: str = "m, c, s", results: str = "z, y", given: str = "int64 m, bool c, float[2] s") -> str:
    inner = f"<body = {body}>" if body else ""
    return f"g ({given}) => (float[2] z, float[N,2] y) {{ {results} = Loop {inner} ({operands}) }}"


def refused(text: str, sentence: str, feeds: Mapping[str, Any], opset: int = 18) -> None:
    model = read(text, opset, check=False)
    ctx = context_of(model)
    prepare(ctx)
    before = normalised(ctx.model)
    with pytest.raises(MalformedLoop) as error:
        rewrite(ctx, [own_outputs.RULE])
    assert sentence in str(error.value)
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)
    assert normalised(ctx.model) == before
    with pytest.raises(Exception, match=r"ONNXRuntimeError|Got invalid"):
        ort_run(model, feeds)


SCANS = {
    "two input axes": (
        scan("num_scan_inputs = 1, scan_input_axes = [0, 0]"),
        "scan_input_axes has 2 entries, but there are 1 scan",
    ),
    "two output axes": (scan("num_scan_inputs = 1, scan_output_axes = [0, 0]"), "scan_output_axes has 2 entries, but there are 1"),
    "two directions": (scan("num_scan_inputs = 1, scan_input_directions = [0, 0]"), "scan_input_directions has 2 entries"),
    "two out directions": (scan("num_scan_inputs = 1, scan_output_directions = [0, 0]"), "scan_output_directions has 2 entries"),
    "empty list": (scan("num_scan_inputs = 1, scan_input_axes : ints = []"), "scan_input_axes has 0 entries, but there are 1"),
    "input axis 2": (
        scan("num_scan_inputs = 1, scan_input_axes = [2]"),
        "has the entry 2, but must be in -2..1 for a tensor of rank 2",
    ),
    "input axis -3": (scan("num_scan_inputs = 1, scan_input_axes = [-3]"), "has the entry -3, but must be in -2..1"),
    "output axis 2": (
        scan("num_scan_inputs = 1, scan_output_axes = [2]"),
        "scan_output_axes has the entry 2, but must be in -2..1",
    ),
    "direction -1": (scan("num_scan_inputs = 1, scan_input_directions = [-1]"), "the entry -1, but only 0 and 1 are allowed"),
    "direction 2": (scan("num_scan_inputs = 1, scan_output_directions = [2]"), "scan_output_directions has the entry 2"),
    "axes not a list": (scan("num_scan_inputs = 1, scan_input_axes = 0"), "scan_input_axes is not a list of integers"),
    "no num_scan_inputs": (scan(""), "num_scan_inputs is missing, but must be in 1..2"),
    "num_scan_inputs 0": (scan("num_scan_inputs = 0"), "num_scan_inputs is 0, but must be in 1..2"),
    "num_scan_inputs 3": (scan("num_scan_inputs = 3"), "num_scan_inputs is 3, but must be in 1..2"),
    "num_scan_inputs -1": (scan("num_scan_inputs = -1"), "num_scan_inputs is -1, but must be in 1..2"),
    "num_scan_inputs text": (scan('num_scan_inputs = "1"'), "num_scan_inputs is not an integer"),
    "no body": (scan(body=""), "Scan producing 'z': body is missing"),
    "body a number": (scan(body="3"), "Scan producing 'z': body is missing"),
    "body too few inputs": (
        scan(body="b (float[2] h) => (float[2] h1, float[2] yt) { h1 = Neg (h) yt = Tanh (h1) }"),
        "body has 1 inputs, but the node passes 2 values to it",
    ),
    "body too few outputs": (
        scan(body="b (float[2] h, float[2] xt) => (float[2] h1) { h1 = Add (h, xt) }"),
        "body has 1 outputs, but the node has 2",
    ),
    "body too many outputs": (
        scan(body=STEP.replace("yt)", "yt, float[2] w)").replace(" }", " w = Neg (h) }")),
        "body has 3 outputs, but the node has 2",
    ),
    "state omitted": (scan(operands=", x"), "state variables and scan inputs cannot be omitted"),
    "state of another type": (
        scan(body=STEP.replace("float[2] h,", "int32[2] h,").replace("Add (h, xt)", "Neg (xt)")),
        "has type int32 for 'h', but 's' of type float32 is passed to it",
    ),
    "next state of another type": (
        scan(
            body=STEP.replace("float[2] h1", "double[2] h1").replace(
                "h1 = Add (h, xt) yt = Tanh (h1)", "h1 = Cast <to = 11> (h) yt = Neg (h)"
            )
        ),
        "has type float64 for 'h1', but 'h' of type float32 is passed to it",
    ),
    "scan input of another type": (
        scan(body=STEP.replace("float[2] xt)", "int32[2] xt)").replace("Add (h, xt)", "Neg (h)")),
        "has type int32 for 'xt', but 'x' of type float32 is passed to it",
    ),
    "same input twice": (
        scan(body="b (float[2] h, float[2] h) => (float[2] h1, float[2] yt) { h1 = Neg (h) yt = Neg (h) }"),
        "body names the same input twice",
    ),
    "initializer for an input": (scan(body=STEP.replace(" {", " <float[2] h = {1, 2}> {")), "has an initializer for its input 'h'"),
    "outer input returned": (
        scan(body="b (float[2] h, float[2] xt) => (float[2] h1, float[2] s) { h1 = Add (h, xt) }"),
        "body returns 's', which it does not compute",
    ),
    "outer weight returned": (
        scan(body="b (float[2] h, float[2] xt) => (float[2] h1, float[2] w) { h1 = Add (h, xt) }").replace(
            "y) {", "y) <float[2] w = {1, 2}> {"
        ),
        "body returns 'w', which it does not compute",
    ),
    "outer result returned": (
        scan(body="b (float[2] h, float[2] xt) => (float[2] h1, float[2] w) { h1 = Add (h, xt) }").replace(
            "{ z", "{ w = Neg (s) z"
        ),
        "body returns 'w', which it does not compute",
    ),
}
SCANS_8 = {
    "no inputs": (scan_8(operands=""), "an opset-8 Scan needs sequence_lens (or an empty name) first"),
    "no lengths": (scan_8(operands="s, x"), "body has 2 inputs, but the node passes 1 values to it"),
    "two directions": (scan_8("num_scan_inputs = 1, directions = [0, 0]"), "directions has 2 entries, but there are 1 scan inputs"),
    "direction -1": (scan_8("num_scan_inputs = 1, directions = [-1]"), "directions has the entry -1, but only 0 and 1 are allowed"),
    "num_scan_inputs 3": (scan_8("num_scan_inputs = 3"), "num_scan_inputs is 3, but must be in 1..2"),
}
LOOPS = {
    "one input": (loop(operands="m"), "inputs are 1, but M and cond (or empty names) are required"),
    "no body": (loop(body=""), "Loop producing 'z': body is missing"),
    "body a number": (loop(body="3"), "Loop producing 'z': body is missing"),
    "state omitted": (loop(operands="m, c, , s"), "loop-carried values cannot be omitted"),
    "body too few inputs": (
        loop(TURN.replace(", float[2] h)", ")").replace("h)", "s)")),
        "has 2 inputs, but 3 (iteration, condition",
    ),
    "node too few outputs": (
        loop(results="z").replace("(float[2] z, float[N,2] y)", "(float[2] z)"),
        "has 3 outputs, but the node's 1 and a condition are needed",
    ),
    "node too many outputs": (loop(results="z, y, w"), "has 3 outputs, but the node's 3 and a condition are needed"),
    "M int32": (loop(given="int32 m, bool c, float[2] s"), "M has type int32, but must be int64"),
    "M of two": (
        loop(operands="mm, c, s").replace("{ z", "{ mm = Constant <value_ints = [3, 3]> () z"),
        "M has 2 elements, but must have one",
    ),
    "cond int64": (loop(given="int64 m, int64 c, float[2] s"), "cond has type int64, but must be bool"),
    "iteration int32": (loop(TURN.replace("int64 i", "int32 i")), "body's iteration number has type int32, but must be int64"),
    "condition float": (
        loop(TURN.replace("bool c,", "float c,").replace("Identity (c)", "Cast <to = 9> (c)")),
        "body's condition input has type float32, but must be bool",
    ),
    "condition out int64": (
        loop(TURN.replace("bool c1", "int64 c1").replace("Identity (c)", "Cast <to = 7> (c)")),
        "body's condition has type int64, but must be bool",
    ),
    "state of another type": (
        loop(TURN.replace("float[2] h)", "double[2] h)").replace("Add (h, h)", "Neg (s)").replace("Neg (h)", "Neg (s)")),
        "has type float64 for 'h', but 's' of type float32 is passed to it",
    ),
    "next state of another type": (
        loop(TURN.replace("float[2] h1", "double[2] h1").replace("Add (h, h)", "Cast <to = 11> (h)")),
        "has type float64 for 'h1', but 'h' of type float32 is passed to it",
    ),
    "same input twice": (loop(TURN.replace("bool c,", "bool i,").replace("(c)", "(i)")), "body names the same input twice"),
    "initializer for an input": (loop(TURN.replace(" {", " <float[2] h = {1, 2}> {")), "has an initializer for its input 'h'"),
    "outer input returned": (
        loop(TURN.replace("float[2] yt)", "float[2] s)").replace("yt = Neg (h)", "")),
        "body returns 's', which it",
    ),
    "outer condition returned": (
        loop(TURN.replace("bool c1", "bool cc").replace("c1 = Identity (c)", ""), given="int64 m, bool c, float[2] s, bool cc"),
        "body returns 'cc'",
    ),
}


@pytest.mark.parametrize("case", SCANS)
def test_a_malformed_scan_is_refused_in_one_sentence(case: str) -> None:
    refused(*SCANS[case], SCAN_FEEDS)


@pytest.mark.parametrize("case", SCANS_8)
def test_a_malformed_opset_8_scan_is_refused_in_one_sentence(case: str) -> None:
    refused(*SCANS_8[case], SCAN_8_FEEDS, opset=8)


@pytest.mark.parametrize("case", LOOPS)
def test_a_malformed_loop_is_refused_in_one_sentence(case: str) -> None:
    refused(*LOOPS[case], LOOP_FEEDS | {"cc": np.array(True)} if "cc" in LOOPS[case][0] else LOOP_FEEDS)


def test_a_malformed_loop_deep_inside_is_refused_before_anything_is_changed() -> None:
    inner = "v = Scan <num_scan_inputs = 1, scan_input_directions = [7], body = d (float a) => (float e) { e = Neg (a) }> (h)"
    text = loop(
        TURN.replace(
            "yt = Neg (h)",
            f"yt = If (c) <then_branch = t () => (float[2] v) {{ {inner} }}, else_branch = f () => (float[2] u) {{ u = Abs (h) }}>",
        )
    )
    refused(text, "Scan producing 'v': scan_input_directions has the entry 7", LOOP_FEEDS)


def test_a_name_is_given_in_preference_to_a_result() -> None:
    text = scan("num_scan_inputs = 0").replace("z, y = Scan", '["my/node é"] z, y = Scan')
    refused(text, "Scan 'my/node é': num_scan_inputs is 0", SCAN_FEEDS)


ODD = {
    "body weight returned": scan(
        body=STEP.replace("yt)", "w)").replace(" {", " <float[2] w = {1, 2}> {").replace("yt = Tanh (h1)", "")
    ),
    "constant returned": scan(body=STEP.replace("Tanh (h1)", "Constant <value_floats = [1.0, 2.0]> ()")),
    "undeclared body": scan(body="b (h, xt) => (h1, yt) { h1 = Add (h, xt) yt = Tanh (h1) }"),
    "one result": "g (float[2] s, float[3,2] x) => (float[2] z) { z = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] a) => (float[2] k) "
    "{ k = Add (h, a) }> (s, x) }",
    "another node's wrong shape": scan()
    .replace("y) {", "y) <float[7] e> {")
    .replace("(s, x)", "(e, x)")
    .replace("{ z", "{ e = Neg (s) z"),
    "wrong shape inside": scan(
        body=STEP.replace(" {", " <float[9] q> {")
        .replace("Tanh (h1)", "Tanh (q) q = Neg (h1)")
        .replace("yt = Tanh (q) q = Neg (h1)", "q = Neg (h1) yt = Tanh (q)")
    ),
    "wrong shape returned": scan(body=STEP.replace("float[2] yt", "float[9] yt")),
}
ODD_LOOPS = {
    "condition returned": loop(TURN.replace("bool c1", "bool c").replace("c1 = Identity (c)", "")),
    "state returned twice": loop(TURN.replace("float[2] yt", "float[2] h1").replace("yt = Neg (h)", "")),
    "state input returned": loop(TURN.replace("float[2] yt", "float[2] h").replace("yt = Neg (h)", "")),
    "condition from a weight": loop(
        TURN.replace("bool c1)", "bool t)")
        .replace("bool c1,", "bool t,")
        .replace(" {", " <bool t = {1}> {")
        .replace("c1 = Identity (c)", "")
    ),
    "no condition": loop(operands="m, , s"),
    "step number [1]": loop(TURN.replace("int64 i", "int64[1] i")),
    "undeclared states": loop(TURN.replace("float[2] h)", "h)").replace("float[2] h1, float[2] yt", "h1, yt")),
    "state of another rank": loop(
        TURN.replace("float[2] h)", "float[1,2] h)").replace("float[2] h1", "float[1,2] h1").replace("Neg (h)", "Neg (s)")
    ),
}


def runs_as_before(text: str, feeds: Mapping[str, Any]) -> None:
    model = read(text, check=False)
    ort_run(model, feeds)
    apply(model, RULES, feeds=feeds, check=False)


@pytest.mark.parametrize("case", ODD)
def test_an_odd_scan_that_runs_is_not_refused(case: str) -> None:
    runs_as_before(ODD[case], SCAN_FEEDS)


@pytest.mark.parametrize("case", ODD_LOOPS)
def test_an_odd_loop_that_runs_is_not_refused(case: str) -> None:
    runs_as_before(ODD_LOOPS[case], LOOP_FEEDS)


def test_a_wrong_declared_shape_decides_nothing() -> None:
    """onnxruntime warns of such a shape and goes by the operators."""
    text = """
    g (float[3,2] x) => (int64[N,2] y) {
        e = Slice (x, one, two, zero)
        y = Scan <num_scan_inputs = 1, body = b (float[2] a) => (int64[2] n) {
            k = Shape (e)
            n = Identity (k)
        }> (e)
    }"""
    head = '<ir_version: 10, opset_import: ["": 18]>\n'
    model = onnx.parser.parse_model(
        head + text.replace("y) {", "y) <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {3}> {")
    )
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("e", onnx.TensorProto.FLOAT, [1, 7]))
    runs = ort_run(model, {"x": np.ones((3, 2), np.float32)})
    assert runs[0].tolist() == [[2, 2], [2, 2]]
    after, _ = apply(model, RULES, check=False)
    assert ort_run(after, {"x": np.ones((3, 2), np.float32)})[0].tolist() == [[2, 2], [2, 2]]
