"""Bodies and branches hold the constants that they dequantize."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import ortscan
from tests.rewrites.apply import read
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

WEIGHTS = "{kind}[2,2] w = {{1, 2, 3, 4}}, float s = {{0.1}}, {kind} z = {{0}}"
PRODUCTS = {
    "MatMul": "d = DequantizeLinear (w, s, z) p = MatMul (h, d)",
    "MatMul without a zero point": "d = DequantizeLinear (w, s) p = MatMul (h, d)",
    "Gemm": "d = DequantizeLinear (w, s, z) p = Gemm (h, d)",
    "transposed": "d = DequantizeLinear (w, s, z) t = Transpose <perm = [1, 0]> (d) p = MatMul (h, t)",
    "copied": "v = Identity (w) d = DequantizeLinear (v, s, z) p = MatMul (h, d)",
    "read twice": "d = DequantizeLinear (w, s, z) q = MatMul (h, d) e = DequantizeLinear (w, s, z) p = MatMul (q, e)",
}
LOOP = """g (float[2,2] h0, float[T,2,2] xs) => (float[2,2] hT) {{
    hT = Scan <num_scan_inputs = 1, body = b (float[2,2] h, float[2,2] x) => (float[2,2] h1) <{own}> {{
        {body} a = Sin (p) h1 = Mul (a, x) }}> (h0, xs) }}"""
BRANCHES = """g (float[2,2] h, bool c, float[T] xs) => (float[2,2] y, float[T] ys) <{outer}> {{
    y = If (c) <then_branch = t () => (float[2,2] p) <{own}> {{ {body} }},
        else_branch = e () => (float[2,2] v) {{ {other} }}>
    ys = Scan <num_scan_inputs = 1, body = b (float x) => (float r) {{ r = Exp (x) }}> (xs) }}"""
SHARED = BRANCHES.format(
    outer=WEIGHTS.format(kind="int8"), own="", body=PRODUCTS["MatMul"], other="f = DequantizeLinear (w, s, z) v = MatMul (h, f)"
)


def loop(name: str, kind: str = "int8", opset: int = 21) -> onnx.ModelProto:
    return read(LOOP.format(own=WEIGHTS.format(kind=kind), body=PRODUCTS[name]), opset)


def feeds(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    random = np.random.default_rng(2)
    shapes = {value.name: [dim.dim_value or 3 for dim in value.type.tensor_type.shape.dim] for value in model.graph.input}
    drawn = {name: random.uniform(0, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    return drawn | {name: np.array(True) for name in drawn if name == "c"}


def assert_close(after: onnx.ModelProto | str, model: onnx.ModelProto) -> None:
    """Compare with the unoptimised original: onnxruntime rounds the other operand of a product that it fuses to bytes."""
    assert_same_numbers(ort_run(after, feeds(model)), ort_run(model, feeds(model), optimised=False), 1e-2, 1e-4)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("opset", [17, 21])
def test_a_loop_that_stays_loads_with_its_dequantized_weights(name: str, kind: str, opset: int) -> None:
    model = loop(name, kind, opset)
    after = ortscan.optimize(model, verify=False, passes=["guard-scan"])
    assert_close(after, model)


@pytest.mark.parametrize(
    ("outer", "own"),
    [
        ("int8[2,2] w = {1, 2, 3, 4}", "float s = {0.1}, int8 z = {0}"),
        ("float s = {0.1}", "int8[2,2] w = {1, 2, 3, 4}, int8 z = {0}"),
    ],
)
def test_a_branch_gets_weights_and_scale_of_the_graph_around_it(outer: str, own: str) -> None:
    model = read(BRANCHES.format(outer=outer, own=own, body=PRODUCTS["MatMul"], other="v = Abs (h)"), 21)
    after = ortscan.optimize(model, verify=False)
    assert_close(after, model)


def test_both_branches_get_a_copy_of_shared_weights() -> None:
    model = read(SHARED, 21)
    after = ortscan.optimize(model, verify=False)
    (branching,) = [node for node in after.graph.node if node.op_type == "If"]
    assert [sorted(value.name for value in branch.g.initializer) for branch in branching.attribute] == [
        ["s_1", "w_1"],
        ["s_2", "w_2"],
    ]
    assert [value.name for value in after.graph.initializer] == ["z"]


def test_weights_in_a_file_stay_in_a_file(tmp_path: Path) -> None:
    model = loop("MatMul")
    path, after = tmp_path / "model.onnx", tmp_path / "after.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    ortscan.optimize(path, output=after, verify=False, passes=["guard-scan"])
    assert_close(str(after), model)
