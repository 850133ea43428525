"""No Slice of opset 10 gives onnxruntime a size under the name of a larger one."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import ortscan
from rewrites.driver.tidying import rename_sliced_sizes
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

HEAD = """<ir_version: 5, opset_import: ["": {}]> g (float[B,3] x, float[B,B] w, int64[1] some) => (float[?,?] y)
<int64[1] minus = {{-1}}, int64[1] last = {{9}}, int64[1] axis = {{0}}>"""
LOOP = """<ir_version: 5, opset_import: ["": 10]> g (float[B] x, float[1,B] u) => (float y, float[?,?] z)
<int64 one = {1}, bool yes = {1}, int64[1] minus = {-1}, int64[1] last = {9}, int64[1] axis = {0}> {
    s, z = Loop (one, yes, x) <body = b (int64 i, bool c, float[?] h) => (bool c1, float[?] h1, float[?] v) {
        e = Squeeze <axes = [0]> (u) f = Add (e, h) v = Sin (f) h1 = Identity (h) c1 = Identity (c) }>
    w = Slice (s, minus, last, axis) k = Neg (w) y = Squeeze (k) }"""


def named(opset: int, nodes: str) -> list[str | int | None]:
    model = ir.from_proto(onnx.parser.parse_model(f"{HEAD.format(opset)} {{ {nodes} y = Identity (s) }}"))
    rename_sliced_sizes(model)
    shape = model.graph[-1].inputs[0].shape
    return [] if shape is None else [dim if isinstance(dim, int) else dim.value for dim in shape]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("s = Slice (x, minus, last, axis)", ["B cut for s", 3]),
        ("s = Slice (w, minus, last, axis)", ["B cut for s", "B"]),
        ("s = Slice (w, minus, last)", ["B cut for s", "B cut for s"]),
        ("s = Slice (x, minus, last, some)", ["B cut for s", None]),
    ],
)
def test_each_name_that_is_cut_becomes_another(nodes: str, expected: list[object]) -> None:
    assert named(10, nodes) == expected


def test_other_opsets_are_left() -> None:
    assert named(11, "s = Slice (x, minus, last, axis)") == []


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_a_result_of_opset_10_is_not_put_into_memory_of_another_size(batch: int) -> None:
    model = onnx.parser.parse_model(LOOP)
    after = ortscan.optimize(model, opset="keep", verify=False)
    assert "Loop" not in {node.op_type for node in after.graph.node}
    feeds = {"x": np.ones(batch, np.float32), "u": np.ones((1, batch), np.float32)}
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
    assert ortscan.optimize(after, opset="keep", verify=False) == after
