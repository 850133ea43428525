"""Every operator that changed, held in three places, computes on onnxruntime after the migration what it did before."""

from collections.abc import Callable
from functools import cache

import numpy as np
import onnx
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

from rewrites.migration.lifting import LIFTING
from rewrites.migration.versions import schema_of, versions_of
from tests.rewrites.migration.cases import CASES
from tests.rewrites.migration.holders import Case, convert, in_if_in_loop, in_main, in_scan
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

HOLDERS: dict[str, Callable[..., tuple[onnx.ModelProto, dict[str, np.ndarray]]]] = {
    "main": in_main,
    "scan": in_scan,
    "loop": in_if_in_loop,
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_migrated_model_computes_the_same(case: Case, holder: str):
    if holder == "scan":
        case = lifted_to_nine(case)
    model, feeds = HOLDERS[holder](case)
    expected = ort_run(model, feeds)
    middle = next(opset for opset in (15, 19, 22, 25) if opset > case.opset)
    for target in (middle, 26):
        assert_same_numbers(ort_run(convert(model, target), feeds), expected, rtol=1e-6, atol=1e-7, why=f"opset {target}: ")


def lifted_to_nine(case: Case) -> Case:
    """The case in opset 9, where a Scan has no batch; what changed in opset 9 has cases of that opset too."""
    return case if case.opset >= 9 else Case(case.nodes, 9, case.feeds, case.constants, case.outputs)


def test_every_operator_that_changed_has_a_case():
    covered = {op for case in CASES for op in case.ops}
    assert changed_operators() - covered == {"Loop", "Scan"}, "those two hold the cases"


def test_every_rule_has_a_case():
    covered = {op for case in CASES for op in case.ops}
    assert {op for op, version in LIFTING if version >= 9} <= covered


@cache
def changed_operators() -> set[str]:
    """The operators that onnxruntime runs and whose schema differs between two opsets from 8 to 26 by more than types."""
    run = {kernel.op_name for kernel in get_all_opkernel_def() if kernel.domain in ("", "ai.onnx")}
    return {op for op in run for version in versions_of(op) if 8 < version <= 26 and _differs(op, version)}


def _differs(op: str, version: int) -> bool:
    before, after = schema_of(op, version - 1), schema_of(op, version)
    return before is not None and after is not None and _spelling(before) != _spelling(after)


def _spelling(schema: onnx.defs.OpSchema) -> list[object]:
    formals = [[(one.name, one.option) for one in values] for values in (schema.inputs, schema.outputs)]
    attributes = {(name, one.type, one.required, str(one.default_value)) for name, one in schema.attributes.items()}
    return [formals, attributes, schema.deprecated]
