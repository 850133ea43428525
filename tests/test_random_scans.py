"""Random Scans of every dialect through all rules, against the plain loop over time."""

from typing import Any

import onnx
import pytest

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from tests.campaigns.fuzz.case import Case
from tests.campaigns.fuzz.scan_cases import OPSETS, assert_same_as_steps, drawn_scans


def assert_rewritten_equal(case: Case, **options: Any) -> onnx.ModelProto:
    result = to_caller_type(rewritten(case.model, debug=True, **options)[0])
    onnx.checker.check_model(result, full_check=True)
    assert_same_as_steps(case, result)
    return result


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("idiom", ["random_body", "random_map"])
def test_a_random_scan_keeps_its_numbers(opset, idiom):
    for case in drawn_scans(5, opset, idiom):
        assert_rewritten_equal(case)


@pytest.mark.long
@pytest.mark.parametrize("opset", OPSETS)
def test_a_random_scan_keeps_its_numbers_where_memory_is_short(opset):
    for case in drawn_scans(5, opset, "random_body", "random_map"):
        assert_rewritten_equal(case, memory_budget=64)


@pytest.mark.long
@pytest.mark.parametrize("opset", OPSETS)
def test_a_random_scan_that_onnxruntime_computes_wrongly_is_repaired(opset):
    for case in drawn_scans(5, opset, "random_body", "passengers", aliased=True):
        assert_rewritten_equal(case)


@pytest.mark.long
@pytest.mark.parametrize("opset", OPSETS)
def test_a_random_scan_of_fixed_shapes_is_written_out_where_the_target_has_no_loops(opset):
    for case in drawn_scans(3, opset, "random_body", lengths=False):
        shapes = {name: list(array.shape) for name, array in case.feeds[0].items()}
        result = assert_rewritten_equal(case, target="coreml", fix_shapes=shapes)
        assert not {node.op_type for node in result.graph.node} & {"Scan", "Loop", "If"}
