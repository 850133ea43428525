"""Opset-8 Scans whose states change their shape in a step: onnxruntime runs them where all rows have one step."""

import itertools

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

MODEL = """<ir_version: 4, opset_import: ["": 8]>
g (int64[{b}] l, float[{b},C] s, float[{b},T,4] x) => (float[{b},K] z, float[{b},T,4] y) {{
    z, y = Scan <num_scan_inputs = 1, directions = [{direction}], body = b (float[C] h, float[D] a) => (float[E] h1, float[D] y1) {{
        {inside} y1 = Neg (a)
    }}> (l, s, x) }}"""
INSIDE = {
    "taken from the slice": "h1 = Tanh (a)",
    "widened by the slice": "h1 = Add (h, a)",
    "cut": "h1 = Slice <starts = [0], ends = [2]> (h)",
    "kept after all": "n = Neg (h) h1 = Slice <starts = [0], ends = [99]> (n)",
}


def feeds(lengths: list[int], steps: int, width: int) -> dict[str, np.ndarray]:
    rng, rows = np.random.default_rng(steps + width), len(lengths)
    floats = {"s": (rows, width), "x": (rows, steps, 4)}
    return {"l": np.array(lengths), **{name: rng.normal(size=shape).astype(np.float32) for name, shape in floats.items()}}


def answer(model: onnx.ModelProto, given: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    try:
        return ort_run(model, given)
    except Exception as error:
        if "onnxruntime" not in type(error).__module__:
            raise
        return None


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize(("b", "rows"), [("1", 1), ("B", 1), ("B", 2), ("3", 3)])
@pytest.mark.parametrize(("direction", "lengths"), [(0, True), (1, True), (1, False)])
def test_they_run_wherever_the_original_does(inside, b, rows, direction, lengths):
    text = MODEL.format(b=b, inside=INSIDE[inside], direction=direction)
    model = model_from_text(text if lengths else text.replace(f"int64[{b}] l, ", "").replace("(l, s, x)", "(, s, x)"), check=False)
    results = [ortscan.migrate(model, 9), ortscan.migrate(model, 18), ortscan.optimize(model)]
    ran = 0
    for real, steps, width in itertools.product([[1] * rows, [2] + [1] * (rows - 1)], (1, 2, 3), (1, 4, 5)):
        if max(real) > steps:
            continue
        given = feeds(real, steps, width)
        if not lengths:
            del given["l"]
        wanted = answer(model, given)
        if wanted is None:
            continue
        ran += 1
        for result in results:
            assert_same_numbers(ort_run(result, given), wanted)
    assert ran


def test_lengths_that_are_known_need_no_choice():
    text = MODEL.format(b="2", inside=INSIDE["kept after all"], direction=0)
    text = text.replace("int64[2] l, ", "").replace("float[2,T,4] y) {", "float[2,T,4] y) <int64[2] l = {1, 2}> {")
    assert "If" not in {node.op_type for node in ortscan.migrate(model_from_text(text, check=False), 18).graph.node}


EMPTY = """<ir_version: 4, opset_import: ["": 8]>
g (float[B,5] s, float[B,T,4] x) => (float[B,5] z, float[B,T,4] y) {
    z, y = Scan <num_scan_inputs = 1, body = b (float[5] h, float[4] a) => (float[5] h1, float[4] y1) { h1 = Tanh (h) y1 = Neg (a) }> (, s, x) }"""


@pytest.mark.parametrize("target", [9, 16, 18, 21])
def test_no_scan_over_another_axis_than_the_first_is_written(target):
    after = ortscan.migrate(model_from_text(EMPTY), target)
    (scan,) = [node for node in after.graph.node if node.op_type == "Scan"]
    assert {attribute.name for attribute in scan.attribute} == {"body", "num_scan_inputs"}
    z, y = ort_run(after, {"s": np.zeros((0, 5), np.float32), "x": np.zeros((0, 3, 4), np.float32)})
    assert (z.shape, y.shape) == ((0, 5), (0, 3, 4))
    with pytest.raises(Exception, match="Invalid dim0_offset"):  # which onnxruntime says of every later Scan without steps
        ort_run(after, {"s": np.zeros((2, 5), np.float32), "x": np.zeros((2, 0, 4), np.float32)})
