"""Random Scans of every dialect through all rules, against the plain loop over time."""

from typing import Any

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.scans import OPSETS, ScanCase, map_scans, scan_models

SETTINGS = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


def assert_rewritten_equal(case: ScanCase, **options: Any) -> None:
    loaded, _ = rewritten(case.model, debug=True, **options)
    result = to_caller_type(loaded)
    onnx.checker.check_model(result, full_check=True)
    assert_same_numbers(ort_run(result, case.feeds), run_model(case.model, case.feeds), rtol=1e-4, atol=1e-5)


@SETTINGS
@given(st.sampled_from(OPSETS).flatmap(lambda opset: scan_models(opset=opset)))
def test_a_random_scan_keeps_its_numbers(case):
    assert_rewritten_equal(case)


@pytest.mark.long
@SETTINGS
@given(st.sampled_from(OPSETS).flatmap(lambda opset: map_scans(opset=opset)))
def test_a_random_map_keeps_its_numbers(case):
    assert_rewritten_equal(case)


@pytest.mark.long
@SETTINGS
@given(st.sampled_from(OPSETS).flatmap(lambda opset: scan_models(opset=opset)))
def test_a_random_scan_keeps_its_numbers_where_memory_is_short(case):
    assert_rewritten_equal(case, memory_budget=64)


@pytest.mark.long
@SETTINGS
@given(st.sampled_from(OPSETS).flatmap(lambda opset: scan_models(opset=opset, direct_outputs=True)))
def test_a_random_scan_that_onnxruntime_computes_wrongly_is_repaired(case):
    assert_rewritten_equal(case)


@pytest.mark.long
@settings(SETTINGS, max_examples=40)
@given(st.sampled_from(OPSETS).flatmap(lambda opset: scan_models(opset=opset, lengths=False)))
def test_a_random_scan_of_fixed_shapes_is_written_out_where_the_target_has_no_loops(case):
    shapes = {name: list(array.shape) for name, array in case.feeds.items()}
    assert_rewritten_equal(case, target="coreml", fix_shapes=shapes)
    loaded, _ = rewritten(case.model, target="coreml", fix_shapes=shapes)
    assert not {node.op_type for node in loaded.model.graph.all_nodes()} & {"Scan", "Loop", "If"}
