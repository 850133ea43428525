"""The walk on which shapes are inferred: into Scans and branches, and out again."""

from functools import partial

import numpy as np
import onnx_ir as ir
import pytest

from rewrites.analysis.shapes.bodies import ShapeWalk
from rewrites.graph.node_inference import infer_node
from rewrites.graph.values import shape_dims
from rewrites.graph.walk import all_nodes, inner_graphs
from rewrites.loops import LoopView
from rewrites.registry import RULES
from tests.rewrites.apply import apply, prepared, read
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import loop

SCAN = """
g (float[B] s, float[3,T] x) => (float[B] l, float ys) {
  l, ys = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
    body = b (float p, float q) => (float p1, float r) { p1 = Neg (p) r = Exp (q) }> (s, x)
}
"""
IF = """
g (bool c, float[2,3,N] s, float[2,4,N] t) => (float z) {
  z = If (c) <then_branch = y () => (float u) { u = Neg (s) }, else_branch = n () => (float v) { v = Neg (t) }>
}
"""
LOOP = """
g (int64 n, bool c, float[2] s) => (float l) {
  l = Loop (n, c, s) <body = b (int64 i, bool d, float p) => (bool d1, float p1) { d1 = Identity (d) p1 = Neg (p) }>
}
"""


def followed(
    text: str, *, known: dict[str, ir.Shape] | None = None, **how: bool
) -> tuple[dict[str, list[int | str | None] | None], ShapeWalk, list[str]]:
    """The shapes of all values of `text` after a walk, where none were declared but those `known` and the inputs'."""
    model = ir.from_proto(read(text, check=False))
    bodies = [value for graph in inner_graphs(model.graph) for value in graph.inputs]
    values = [*bodies, *(value for node in all_nodes(model.graph) for value in node.outputs)]
    for value in values:
        value.shape = (known or {}).get(value.name or "")
    loops = list[str]()

    def at_loop(loop: LoopView) -> None:
        loops.append(loop.node.op_type)

    infer = partial(infer_node, opsets=model.opset_imports, ir_version=model.ir_version)
    walk = ShapeWalk(model.opset_imports[""], infer, at_loop, **how)
    walk.infer_graph(model.graph)
    return {value.name or "": None if value.shape is None else shape_dims(value.shape) for value in values}, walk, loops


def test_a_scan_is_followed_inside_and_gives_what_its_body_tells() -> None:
    found, walk, _ = followed(SCAN)
    assert found == {"p": ["B"], "q": [3], "p1": ["B"], "r": [3], "l": ["B"], "ys": [3, "T"]}
    assert {value.name for value in walk.inferred} == {"l", "ys"}


def test_where_known_shapes_stay_names_in_a_body_mean_nothing_outside() -> None:
    found, _, _ = followed(SCAN, known={"q": ir.Shape(["own"])}, forgets_shapes=False)
    assert found["r"] == ["own"]
    assert found["ys"] == [None, "T"]


@pytest.mark.parametrize("declared", [True, False])
def test_a_row_of_a_stack_of_no_known_shape_may_have_the_declared_one(declared: bool) -> None:
    text = SCAN.replace("float[3,T] x", "float[9] w, int64[k] m").replace("l, ys =", "x = Reshape (w, m) l, ys =")
    assert followed(text, known={"q": ir.Shape([5])}, use_declared_rows=declared)[0]["r"] == ([5] if declared else None)


def test_an_if_gives_what_its_branches_have_in_common() -> None:
    assert followed(IF)[0]["z"] == [2, None, "N"]


def test_a_loop_is_left_to_who_asks() -> None:
    found, _, loops = followed(LOOP, known={"p": ir.Shape([2])})
    assert loops == ["Loop"]
    assert found == {"i": None, "d": None, "p": [2], "d1": None, "p1": None, "l": None}


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
    "inside", ["a = Reshape (h, shape) h1 = Neg (a) y = Neg (h)", "n = Shape (h) h1 = Cast <to = 1> (n) y = Neg (h)"]
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
