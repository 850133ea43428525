"""Loops over float8 and four bits are left, since nothing slices or joins such elements."""

import onnx
import pytest

from ortscan.api import rewritten

SCAN = """<ir_version: 11, opset_import: ["": 24]>
g (KIND[2] h, KIND[T,2] x) => (KIND[2] l, KIND[T,2] ys) {
  l, ys = Scan <num_scan_inputs = 1, body = b (KIND[2] s, KIND[2] xt) => (KIND[2] n, KIND[2] y) {
    n = Identity (xt)
    y = Identity (s)
  }> (h, x) }"""


@pytest.mark.parametrize("custom_ops", [False, True])
@pytest.mark.parametrize("kind", ["float8e4m3fn", "int4"])
def test_a_loop_over_elements_that_nothing_slices_is_left_with_a_reason(kind: str, custom_ops: bool):
    _, report = rewritten(onnx.parser.parse_model(SCAN.replace("KIND", kind)), custom_ops=custom_ops)
    assert not report.changed
    assert [(reason.code, reason.detail) for reason in report.loops[0].reasons] == [("ELEMENT-TYPE", f"'s' holds {kind}")]


def test_other_small_elements_are_sliced():
    assert rewritten(onnx.parser.parse_model(SCAN.replace("KIND", "int8")))[1].loops[0].fate == "removed"


def test_elements_that_are_only_computed_from_do_no_harm():
    model = onnx.parser.parse_model("""<ir_version: 11, opset_import: ["": 24]> g (float8e4m3fn[T,2] x) => (float[T,2] ys) {
        ys = Scan <num_scan_inputs = 1, body = b (float8e4m3fn[2] xt) => (float[2] y) { y = Cast <to = 1> (xt) }> (x) }""")
    assert rewritten(model)[1].loops[0].fate == "removed"
