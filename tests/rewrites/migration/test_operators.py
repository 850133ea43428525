"""Every operator that changed, held in two places, computes on onnxruntime after the migration what it did before."""

import dataclasses
from collections.abc import Callable
from functools import cache

import numpy as np
import onnx
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

from rewrites.migration.conversions import LIFTING
from rewrites.migration.versions import NEWEST, differ_only_in_types, versions_of
from tests.rewrites.migration.cases import CASES
from tests.rewrites.migration.holders import Case, convert, in_if_in_loop, in_main, in_scan
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

HOLDERS: dict[str, Callable[..., tuple[onnx.ModelProto, dict[str, np.ndarray]]]] = {
    "main": in_main,
    "scan": in_scan,
    "loop": in_if_in_loop,
}


def held(number: int, case: Case) -> list[tuple[Case, str]]:
    """Return the case in the main graph, and by turns in a Loop or a Scan.

    A Scan has a batch in opset 8, so it holds cases that read alike in opset 9.
    """
    alike = case.opset >= 9 or not any(versions_of(op)[0] <= 8 and not differ_only_in_types(op, 8, 9) for op in case.ops)
    in_body = (
        (dataclasses.replace(case, opset=max(case.opset, 9)), "scan") if alike and case.scannable and number % 2 else (case, "loop")
    )
    return [(case, "main"), in_body]


@pytest.mark.parametrize(
    ("case", "holder"),
    [pytest.param(*pair, id=f"{pair[1]}: {pair[0]}") for number, case in enumerate(CASES) for pair in held(number, case)],
)
def test_the_migrated_model_computes_the_same(case: Case, holder: str):
    model, feeds = HOLDERS[holder](case)
    expected = ort_run(model, feeds)
    for target in {next(opset for opset in (15, 19, 21, 24, 25, 26) if opset > case.opset), case.newest}:
        assert_same_numbers(ort_run(convert(model, target), feeds), expected, rtol=1e-6, atol=1e-7, why=f"opset {target}: ")


def test_every_operator_that_changed_has_a_case():
    covered = {op for case in CASES for op in case.ops}
    assert changed_operators() - covered == {"Loop", "Scan"}, "those two hold the cases"


def test_every_rule_has_a_case():
    covered = {op for case in CASES for op in case.ops}
    assert {op for op, version in LIFTING if version >= 9} <= covered


@cache
def changed_operators() -> set[str]:
    """The operators that onnxruntime runs and whose schema differs between two opsets from 8 on by more than types."""
    run = {kernel.op_name for kernel in get_all_opkernel_def() if kernel.domain in ("", "ai.onnx")}
    return {
        op
        for op in run
        for version in versions_of(op)
        if 8 < version <= NEWEST and version > versions_of(op)[0] and not differ_only_in_types(op, version - 1, version)
    }
