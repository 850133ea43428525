"""ortscan's passes in pipelines of onnx_ir."""

import onnx_ir as ir
import pytest
from onnx_ir.passes import common

import ortscan
from ortscan import passes
from rewrites.base.errors import MigrationError
from tests.support.text import model_from_text

SUM = """<ir_version: 8, opset_import: ["": 17]> g (float[2] s, float[T, 2] x) => (float[2] z, float[T, 2] y) {
    z, y = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] r) => (float[2] h1, float[2] o) {
        h1 = Add (h, r) o = Identity (h1) }> (s, x) }"""
OTHER = SUM.replace("h1 = Add (h, r)", "a = Sin (h) h1 = Mul (a, r)")


def model(text: str = SUM) -> ir.Model:
    return ir.from_proto(model_from_text(text))


def operators(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


def test_a_sequence_of_passes_removes_loops() -> None:
    before = model()
    result = ir.passes.Sequential(passes.RemoveLoops(target="onnx"), common.RemoveUnusedNodesPass())(before)
    assert result.modified
    assert "CumSum" in operators(result.model)
    assert operators(before) == ["Scan"]


def test_a_model_without_loops_comes_back_as_a_new_model_that_is_not_modified() -> None:
    once = passes.RemoveLoops()(model()).model
    again = passes.RemoveLoops()(once)
    assert not again.modified
    assert again.model is not once


def test_passes_can_be_repeated_until_nothing_changes() -> None:
    manager = ir.passes.PassManager([passes.RemoveLoops(), passes.Migrate(21)], steps=3)
    result = manager(model())
    assert result.model.opset_imports[""] == 21


def test_a_loop_that_is_left_is_an_error_if_all_are_to_go() -> None:
    assert passes.RemoveLoops()(model(OTHER)).model is not None
    with pytest.raises(ir.passes.PostconditionError, match=r"1 of the loops are left, the first is Scan .*ortscan\.explain"):
        passes.RemoveLoops(require_all=True)(model(OTHER))


def test_migrate_tells_whether_it_changed_the_opset() -> None:
    after = passes.Migrate(18)(model())
    assert (after.modified, after.model.opset_imports[""]) == (True, 18)
    assert not passes.Migrate(18)(after.model).modified
    with pytest.raises(ir.passes.PassError) as error:
        ir.passes.Sequential(passes.Migrate(8))(model())
    assert isinstance(error.value.__cause__, MigrationError)


def test_an_unknown_option_is_refused_when_the_pass_runs() -> None:
    with pytest.raises(TypeError, match="tarrget"):
        passes.RemoveLoops(tarrget="cpu")(model())  # type: ignore[call-arg]


def test_the_module_is_reached_through_the_package() -> None:
    assert ortscan.passes.RemoveLoops is passes.RemoveLoops
