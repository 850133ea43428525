"""onnxruntime computes garbage where a Scan body returns a value twice or an input directly, so only the oracle counts here."""

import numpy as np
import pytest

from rewrites.cleanup import identities
from rewrites.registry import RULES
from rewrites.repair import own_outputs
from tests.rewrites.apply import apply, patches, read
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import becomes, loop, scan, stays
from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

BODIES = {
    "a value twice": ("float[2] h1, float[2] h1", "h1 = Add (h, x)"),
    "a value three times": ("float[2] h1, float[2] h1, float[2] h1", "h1 = Add (h, x)"),
    "the scanned input": ("float[2] h1, float[2] x", "h1 = Add (h, x)"),
    "the state": ("float[2] h1, float[2] h", "h1 = Add (h, x)"),
    "inputs only": ("float[2] x, float[2] h, float[2] x", ""),
    "the state as its next": ("float[2] h, float[2] y", "y = Add (h, x)"),
}


def written(case: str, opset: int) -> str:
    outputs, inside = BODIES[case]
    count = outputs.count("float") - 1
    names = [f"y{i}" for i in range(count)]
    batch = "B," if opset < 9 else ""
    return scan(
        inside,
        outputs=outputs,
        given=f"float[{batch}2] s, float[{batch}T,2] xs",
        results=", ".join([f"float[{batch}2] z", *(f"float[{batch}T,2] {name}" for name in names)]),
        outer=", ".join(["z", *names]),
        operands=", s, xs" if opset < 9 else "s, xs",
    )


@pytest.mark.parametrize("case", BODIES)
@pytest.mark.parametrize("opset", range(8, 26))
def test_every_dialect_computes_what_the_text_says(opset: int, case: str) -> None:
    text = written(case, opset)
    becomes(own_outputs, text, opset=opset, on_ort=False)
    model = read(text, opset)
    after, _ = apply(model, RULES)
    assert_same_numbers(ort_run(after, data(model)), run_model(model, data(model)))


def test_each_output_gets_a_node_of_its_own() -> None:
    becomes(
        own_outputs,
        scan(
            "h1 = Add (h, x)",
            outputs="float[2] h1, float[2] h1, float[2] x",
            results="float[2] z, float[3,2] p, float[3,2] q",
            outer="z, p, q",
        ),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[3,2] p, float[3,2] q) {
            z, p, q = Scan <num_scan_inputs = 1, body = b (h, x) => (h1, h2, x2) {
                h1 = Add (h, x)  h2 = Identity (h1)  x2 = Identity (x)
            }> (s, xs) }""",
        on_ort=False,
    )


def test_a_body_weight_returned_is_copied() -> None:
    text = scan("h1 = Add (h, x)", outputs="float[2] h1, float[2] w").replace("{ h1", "<float[2] w = {1, 2}> { h1")
    after, _ = apply(text, [own_outputs], feeds=data(read(text)))
    assert [tensor.name for tensor in after.graph.initializer] == ["w_1"]


def test_a_loop_copies_the_number_of_the_step_only() -> None:
    becomes(
        own_outputs,
        loop("", outputs="float[2] h, float[2] h, int64 i", outer="z, ys, n", results="float[2] z, float[N,2] ys, int64[N] n"),
        """g (float[2] s, float[3,2] xs) => (float[2] z, float[N,2] ys, int64[N] n) <int64 m = {3}> {
            z, ys, n = Loop <body = b (i, c, h) => (c1, h, h, i1) { c1 = Identity (c)  i1 = Identity (i) }> (m, , s) }""",
        on_ort=False,
    )


@pytest.mark.parametrize("opset", [8, 11, 13, 16, 19, 21, 23, 24, 25])
def test_the_number_of_the_step_is_right_in_every_version_of_loop(opset: int) -> None:
    text = loop("h1 = Add (h, h)", outputs="float[2] h1, int64 i", outer="z, n", results="float[2] z, int64[N] n", steps=None)
    after, _ = becomes(own_outputs, text, opset=opset, on_ort=False, feeds={"m": np.array(4)})
    assert ort_run(after, {**data(after), "m": np.array(4)})[1].tolist() == [0, 1, 2, 3]


def test_what_has_a_node_of_its_own_is_left_alone() -> None:
    stays(own_outputs, scan("h1 = Add (h, x) y = Identity (h1)"))
    stays(own_outputs, loop("", outputs="float[2] h, float[2] h"))


def test_a_body_within_a_body_is_mended_too() -> None:
    inner = "y = Scan <num_scan_inputs = 1, body = d (float[2] g, float[2] e) => (float[2] e) {}> (h, xs)"
    after, _ = becomes(own_outputs, scan(f"h1 = Add (h, x) {inner}"), on_ort=False)
    (node,) = after.graph.node
    assert "own-outputs" in patches(apply(scan(f"h1 = Add (h, x) {inner}"), [own_outputs, identities])[1])
    assert node.op_type == "Scan"


def test_a_loop_in_a_branch_in_a_loop_is_mended() -> None:
    inner = "p, u = Scan <num_scan_inputs = 1, body = d (float[2] g, float[2] e) => (float[2] e, float[2] g) {}> (h, xs)"
    branches = f"then_branch = a () => (float[2] p) {{ {inner} }}, else_branch = o () => (float[2] v) {{ v = Neg (h) }}"
    text = scan(f"h1 = Add (h, x) y = If (t) <{branches}>", given="float[2] s, float[3,2] xs, bool t")
    becomes(own_outputs, text, on_ort=False, feeds={"t": np.array(True)})
