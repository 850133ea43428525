"""Every form of an opset-8 Scan, in later opsets, against onnxruntime's own opset-8 Scan."""

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ortscan.migration import migrated
from ortscan.modelio import give_back
from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.scan_8_matrix import Form, some_forms
from tests.support.scans import ScanCase, scan_models

TARGETS = (9, 11, 16, 21, 26)
FORMS = some_forms(200)


def assert_migrates(form: Form, target: int) -> None:
    model = form.model()
    loaded, report = migrated(model, target)
    result = give_back(loaded)
    onnx.checker.check_model(result, full_check=True)
    assert len(report.scans) == 1 + (form.nested == "Scan")
    assert [value.SerializeToString() for value in result.graph.input] == [value.SerializeToString() for value in model.graph.input]
    assert [value.SerializeToString() for value in result.graph.output] == [
        value.SerializeToString() for value in model.graph.output
    ]
    feeds = form.feeds()
    assert_same_numbers(ort_run(result, feeds), ort_run(model, feeds))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("part", range(10))
def test_every_form_of_an_opset_8_scan(part, target):
    for number, form in enumerate(FORMS[part::10]):
        if (number + part) % len(TARGETS) == TARGETS.index(target):
            assert_migrates(form, target)


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(scan_models(opset=8), st.sampled_from(TARGETS))
def test_a_random_opset_8_scan(case: ScanCase, target: int):
    loaded, _ = migrated(case.model, target)
    assert_same_numbers(ort_run(give_back(loaded), case.feeds), ort_run(case.model, case.feeds))


@settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
@given(scan_models(opset=8, direct_outputs=True), st.sampled_from(TARGETS))
def test_an_opset_8_scan_that_onnxruntime_computes_wrongly_is_repaired(case: ScanCase, target: int):
    loaded, _ = migrated(case.model, target)
    assert_same_numbers(ort_run(give_back(loaded), case.feeds), run_model(case.model, case.feeds), rtol=1e-4, atol=1e-5)
