import numpy as np
import pytest

from rewrites.driver.engine import rewrite
from rewrites.scan_form import scan_axes
from tests.rewrites.apply import one_loop, patches, prepared
from tests.rewrites.harness import becomes, loop, scan, stays

CUBE = {
    "inputs": "float[2] h, float[4,5] x",
    "outputs": "float[2] h1, float[4,5] y",
    "given": "float[2] s, float[4,3,5] xs",
    "results": "float[2] z, float[4,5,3] ys",
}
INSIDE = "h1 = Neg (h) y = Tanh (x)"


@pytest.mark.parametrize("opset", [9, 13, 18, 25])
@pytest.mark.parametrize(("enter", "leave"), [(1, 2), (-2, -1)])
def test_axes_move_to_the_front_outside_the_loop(opset: int, enter: int, leave: int) -> None:
    becomes(
        scan_axes,
        scan(INSIDE, **CUBE, attributes=f"num_scan_inputs = 1, scan_input_axes = [{enter}], scan_output_axes = [{leave}]"),
        """g (float[2] s, float[4,3,5] xs) => (float[2] z, float[4,5,3] ys) {
            t = Transpose <perm = [1, 0, 2]> (xs)
            z, y = Scan <num_scan_inputs = 1, body = b (h, x) => (h1, y) { h1 = Neg (h)  y = Tanh (x) }> (s, t)
            ys = Transpose <perm = [1, 2, 0]> (y) }""",
        opset=opset,
    )


@pytest.mark.parametrize("axis", range(4))
def test_every_axis_of_a_large_tensor_moves(axis: int) -> None:
    sizes = ["2", "3", "4", "5"]
    inner = ",".join(size for i, size in enumerate(sizes) if i != axis)
    shapes = {
        "inputs": f"float[2] h, float[{inner}] x",
        "outputs": f"float[2] h1, float[{inner}] y",
        "given": "float[2] s, float[2,3,4,5] xs",
        "results": "float[2] z, float[2,3,4,5] ys",
    }
    text = scan(INSIDE, **shapes, attributes=f"num_scan_inputs = 1, scan_input_axes = [{axis}], scan_output_axes = [{axis}]")
    if axis == 0:
        stays(scan_axes, text)
    else:
        becomes(scan_axes, text)


def test_directions_stay_where_they_are() -> None:
    text = scan(
        INSIDE,
        **CUBE,
        attributes="num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [2], scan_input_directions = [1], "
        "scan_output_directions = [1]",
    )
    after, _ = becomes(scan_axes, text)
    (node,) = [node for node in after.graph.node if node.op_type == "Scan"]
    assert {a.name: list(a.ints) for a in node.attribute if a.ints} == {"scan_input_directions": [1], "scan_output_directions": [1]}


def test_only_what_has_another_axis_moves() -> None:
    text = scan(
        "h1 = Add (h, w) y = Tanh (x)",
        inputs="float[2] h, float[2] x, float[2] w",
        attributes="num_scan_inputs = 2, scan_input_axes = [0, 1]",
        given="float[2] s, float[3,2] xs, float[2,3] ws",
        operands="s, xs, ws",
    )
    after, _ = becomes(scan_axes, text)
    assert [node.op_type for node in after.graph.node] == ["Transpose", "Scan"]


def test_a_symbolic_size_moves_along() -> None:
    text = scan(
        INSIDE,
        **CUBE | {"given": "float[2] s, float[4,T,5] xs", "results": "float[2] z, float[4,5,T] ys"},
        attributes="num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [2]",
    )
    becomes(scan_axes, text, T=3)


def test_an_axis_0_stays() -> None:
    stays(scan_axes, scan("h1 = Add (h, x) y = Tanh (x)"))
    stays(scan_axes, loop("h1 = Add (h, h) y = Tanh (h)"))


def test_an_opset_8_scan_stays() -> None:
    text = scan(
        "h1 = Add (h, x) y = Tanh (x)",
        given="float[B,2] s, float[B,T,2] xs",
        operands=", s, xs",
        results="float[B,2] z, float[B,T,2] ys",
    )
    stays(scan_axes, text, opset=8)


def test_a_tensor_of_unknown_rank_stays() -> None:
    ctx = prepared(scan(INSIDE, **CUBE, attributes="num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [2]"))
    node = one_loop(ctx)
    xs = node.inputs[1]
    assert xs is not None
    xs.shape = None
    report = rewrite(ctx, [scan_axes.RULE])
    assert patches(report) == []
    assert [reason.code for reason in report.loops[0].reasons] == ["SCAN-RANK-UNKNOWN"]
    assert "'xs'" in report.loops[0].reasons[0].detail


@pytest.mark.parametrize("kind", ["string", "bool", "float16", "int64"])
def test_every_type_moves(kind: str) -> None:
    text = scan(
        "y = Identity (x)",
        inputs=f"{kind}[4] x",
        outputs=f"{kind}[4] y",
        given=f"{kind}[4,3] xs",
        operands="xs",
        outer="ys",
        results=f"{kind}[4,3] ys",
        attributes="num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1]",
    )
    becomes(scan_axes, text, feeds={"xs": np.array([["a"] * 3] * 4, object)} if kind == "string" else None)
