"""The walk on which shapes are inferred: into Scans and branches, and out again."""

from functools import partial

import onnx_ir as ir
import pytest

from rewrites.analysis.shapes.bodies import Walk
from rewrites.graph.node_inference import infer_node
from rewrites.graph.values import shape_dims
from rewrites.graph.walk import all_nodes, inner_graphs
from rewrites.loops import LoopView
from tests.rewrites.apply import read

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
) -> tuple[dict[str, list[int | str | None] | None], Walk, list[str]]:
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
    walk = Walk(model.opset_imports[""], infer, at_loop, **how)
    walk.follow(model.graph)
    return {value.name or "": None if value.shape is None else shape_dims(value.shape) for value in values}, walk, loops


def test_a_scan_is_followed_inside_and_gives_what_its_body_tells() -> None:
    found, walk, _ = followed(SCAN)
    assert found == {"p": ["B"], "q": [3], "p1": ["B"], "r": [3], "l": ["B"], "ys": [3, "T"]}
    assert {value.name for value in walk.found} == {"l", "ys"}


def test_where_known_shapes_stay_names_in_a_body_mean_nothing_outside() -> None:
    found, _, _ = followed(SCAN, known={"q": ir.Shape(["own"])}, afresh=False)
    assert found["r"] == ["own"]
    assert found["ys"] == [None, "T"]


@pytest.mark.parametrize("declared", [True, False])
def test_a_row_of_a_stack_of_no_known_shape_may_have_the_declared_one(declared: bool) -> None:
    text = SCAN.replace("float[3,T] x", "float[9] w, int64[k] m").replace("l, ys =", "x = Reshape (w, m) l, ys =")
    assert followed(text, known={"q": ir.Shape([5])}, declared_rows=declared)[0]["r"] == ([5] if declared else None)


def test_an_if_gives_what_its_branches_have_in_common() -> None:
    assert followed(IF)[0]["z"] == [2, None, "N"]


def test_a_loop_is_left_to_who_asks() -> None:
    found, _, loops = followed(LOOP, known={"p": ir.Shape([2])})
    assert loops == ["Loop"]
    assert found == {"i": None, "d": None, "p": [2], "d1": None, "p1": None, "l": None}
