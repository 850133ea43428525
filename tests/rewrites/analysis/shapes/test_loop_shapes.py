"""What Loops give has the shape that their bodies' operators tell."""

import numpy as np
import pytest

from rewrites.registry import RULES
from tests.rewrites.apply import apply, prepared, read
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import loop

GIVEN = "float[B,2] s, float[B,2] w, int64[k] shape, int64 j"


def found(inside: str, name: str = "q", *, given: str = GIVEN, inputs: str = "h", more: str = "", **parts: str) -> str:
    """The shape of a value made after a Loop of states of which nothing is declared; sizes with made-up names are not known."""
    outputs = parts.pop("outputs", "h1, y")
    text = loop(
        inside,
        steps=None,
        given=given,
        inputs=inputs,
        outputs=outputs,
        results="float r",
        after=f"q = Exp (z) {more} r = ReduceSum <keepdims = 0> (q)",
        **parts,
    )
    graph = prepared(text, check=False).model.graph
    values = [value for node in graph.all_nodes() for value in node.outputs]
    (value,) = [value for value in [*values, *(one for body in graph.subgraphs() for one in body.inputs)] if value.name == name]
    if value.shape is None:
        return "?"
    dims = [dim if isinstance(dim, int) else dim.value or "unk__" for dim in value.shape.dims]
    return ",".join("?" if str(dim).startswith("unk__") else str(dim) for dim in dims)


@pytest.mark.parametrize("name", ["z", "q", "h", "h1", "y"])
def test_a_state_that_keeps_its_shape_gives_it_to_all_that_is_made_of_it(name: str) -> None:
    assert found("a = Add (h, w) h1 = Tanh (a) y = Neg (h)", name) == "B,2"


def test_a_size_that_a_step_changes_is_not_known_and_the_others_are() -> None:
    assert found("h1 = Concat <axis = 0> (h, w) y = Neg (h)") == "?,2"
    assert found("h1 = Concat <axis = 0> (h, w) y = Neg (h)", "y") == "?,2"
    assert found("h1 = Concat <axis = 1> (h, w) y = Neg (h)") == "B,?"


@pytest.mark.parametrize(
    "inside",
    [
        "a = Reshape (h, shape) h1 = Neg (a) y = Neg (h)",
        "n = Shape (h) h1 = Cast <to = 1> (n) y = Neg (h)",
    ],
)
def test_a_rank_that_a_step_may_change_is_not_known(inside: str) -> None:
    assert found(inside) == "?"


def test_what_is_declared_of_a_state_proves_nothing() -> None:
    inside = "a = Reshape (h, shape) h1 = Neg (a) y = Neg (h)"
    assert found(inside, inputs="float[B,2] h", outputs="float[B,2] h1, float[B,2] y") == "?"


def test_states_that_follow_each_other_change_together() -> None:
    parts = {"inputs": "h, k", "outputs": "h1, k1, y", "operands": "s, w", "outer": "z, z2, ys"}
    assert found("h1 = Identity (k) k1 = Concat <axis = 0> (k, w) y = Neg (h)", **parts) == "?,2"
    assert found("h1 = Identity (k) k1 = Identity (h) y = Neg (h)", **parts) == "B,2"


INNER = "{} = Loop <body = d (int64 e, bool f, g) => (f1, g1) {{ f1 = Identity (f) g1 = {} }}> (j, , {})"


def test_a_loop_within_a_loop_tells_first() -> None:
    assert found(INNER.format("h1", "Tanh (g)", "h") + " y = Neg (h)") == "B,2"
    assert found(INNER.format("h1", "Concat <axis = 0> (g, w)", "h") + " y = Neg (h)") == "?,2"


def test_a_loop_after_a_loop_tells_too() -> None:
    more = INNER.format("p", "Tanh (g)", "q") + " v = Neg (p)"
    assert found("h1 = Tanh (h) y = Neg (h)", "v", more=more) == "B,2"


def test_a_scan_or_branch_of_what_a_loop_gives_knows_its_shape() -> None:
    scan = "v = Scan <num_scan_inputs = 1, body = u (x) => (o) { o = Exp (x) }> (q)"
    assert found("h1 = Tanh (h) y = Neg (h)", "o", more=scan) == "2"
    assert found("h1 = Tanh (h) y = Neg (h)", "v", more=scan) == "B,2"
    branch = "v = If (t) <then_branch = a () => (o) { o = Exp (q) }, else_branch = b () => (o2) { o2 = Neg (q) }>"
    assert found("h1 = Tanh (h) y = Neg (h)", "v", more=branch, given=GIVEN + ", bool t") == "B,2"


def test_a_branch_and_a_scan_in_the_body_are_looked_through() -> None:
    branch = "h1 = If (t) <then_branch = a () => (o) { o = Exp (h) }, else_branch = b () => (o2) { o2 = Neg (w) }> y = Neg (h)"
    assert found(branch, given=GIVEN + ", bool t") == "B,2"
    scan = "h1 = Scan <num_scan_inputs = 1, scan_output_axes = [1], body = u (x) => (o) { o = Exp (x) }> (h) y = Neg (h)"
    assert found(scan) == "?,?"  # [2,B] after a step
    assert found(scan.replace("scan_output_axes = [1], ", "")) == "B,2"


WITHIN = """main (float[7,4] xs, int64 n, int64[k] shape) => (float[7,4] ys) {{
    ys = Scan <num_scan_inputs = 1, body = b (float[4] x) => (float[N] y) {{
        a = Exp (x)  r = {} f = Loop <body = d (int64 i, bool c, h) => (c2, h2) {{ c2 = Identity (c) u = RandomUniformLike (h) v = Sub (u, u)
            w = Add (h, v) h2 = Tanh (w) }}> (n, , r)
        y = Exp (f) }}> (xs) }}"""


@pytest.mark.parametrize(("given", "left"), [("Neg (a)", False), ("Reshape (a, shape)", True)])
def test_what_a_scan_gives_has_a_known_rank(given: str, left: bool) -> None:
    feeds = {"n": np.array(2), "shape": np.array([4])}
    text = WITHIN.format(given)
    after, _ = apply(text, RULES, feeds=data(read(text), k=1) | feeds)
    (node,) = [node for node in after.graph.node if node.op_type == "Scan"]
    assert ("Exp" in [inner.op_type for inner in node.attribute[0].g.node]) == left
