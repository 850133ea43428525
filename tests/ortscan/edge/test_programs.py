"""Programs of exporters, which hold an onnx_ir Model, are models."""

from dataclasses import dataclass
from typing import Any

import onnx
import onnx_ir as ir
import pytest

import ortscan
from tests.support.text import model_from_text

SUM = """<ir_version: 8, opset_import: ["": 17]> g (float[2] s, float[T, 2] x) => (float[2] z, float[T, 2] y) {
    z, y = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] r) => (float[2] h1, float[2] o) {
        h1 = Add (h, r) o = Identity (h1) }> (s, x) }"""


@dataclass
class Program:
    """A program with the attributes and the constructor of ``torch.onnx.ONNXProgram``."""

    model: ir.Model
    exported_program: Any


def program() -> Program:
    return Program(ir.from_proto(model_from_text(SUM)), "traced")


def test_optimize_and_migrate_return_new_programs() -> None:
    before = program()
    proto = ir.to_proto(before.model)
    optimized, migrated = ortscan.optimize(before), ortscan.migrate(before, 21)
    for after in (optimized, migrated):
        assert isinstance(after, Program)
        assert after.exported_program == "traced"
        assert after.model is not before.model
    assert [node.op_type for node in before.model.graph] == ["Scan"]
    assert ir.to_proto(before.model) == proto
    assert "Scan" not in [node.op_type for node in optimized.model.graph]
    assert migrated.model.opset_imports[""] == 21


def test_the_report_comes_with_the_program() -> None:
    after, report = ortscan.optimize(program(), report=True)
    assert isinstance(after, Program)
    assert [loop.fate for loop in report.loops] == ["removed"]


def test_limits_apply_to_programs() -> None:
    assert isinstance(ortscan.optimize(program(), time_limit=120), Program)


def test_the_other_verbs_take_programs(tmp_path: Any) -> None:
    before = program()
    assert ortscan.explain(before).loops
    assert ortscan.verify(before, ortscan.optimize(before)).ok
    assert ortscan.bench(before, before, rounds=1, seconds=0.1).models


@pytest.mark.parametrize("nothing", [Program, object()])
def test_other_objects_are_no_programs(nothing: Any) -> None:
    with pytest.raises(ortscan.OptionError, match="A model is a path"):
        ortscan.optimize(nothing)


def test_a_model_in_a_keyword_is_a_program_too() -> None:
    assert isinstance(ortscan.optimize(model=program()), Program)
    assert isinstance(ortscan.optimize(model=model_from_text(SUM)), onnx.ModelProto)
