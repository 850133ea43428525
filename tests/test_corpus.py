"""Models as real exporters write them, through the whole of `optimize`."""

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.report.codes import lookup
from tests.support.corpus import corpus_models
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

LOOPS = {"Scan", "Loop"}
MODELS = pytest.mark.parametrize("model", corpus_models())


def public(model: onnx.ModelProto) -> list[bytes]:
    initializers = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in initializers]
    return [value.SerializeToString() for value in [*inputs, *model.graph.output]]


def is_valid(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


@MODELS
def test_an_exported_model_comes_out_equal_valid_and_with_its_interface(model):
    original = model.load()
    result = ortscan.optimize(original)
    assert original == model.load()
    assert public(result) == public(original)
    assert is_valid(result) or not is_valid(original)
    before, after = ort_run(original, model.feeds()), ort_run(result, model.feeds())
    assert_same_numbers(after, before, rtol=model.tolerance, atol=model.tolerance)
    if model.faithful:
        for position, array in model.framework_outputs().items():
            np.testing.assert_allclose(after[position], array, rtol=max(1e-3, model.tolerance), atol=max(1e-4, model.tolerance))


@MODELS
def test_a_second_call_changes_nothing(model):
    once = ortscan.optimize(model.load())
    twice = ortscan.optimize(once)
    assert [node.op_type for node in nodes_within(twice.graph)] == [node.op_type for node in nodes_within(once.graph)]
    assert twice == once


@MODELS
def test_every_loop_left_has_a_reason_code_that_explain_knows(model):
    for loop in ortscan.explain(model.load()).loops_left:
        assert loop.reasons, loop.where
        assert all(lookup(reason.code) for reason in loop.reasons)


def is_map_like(name: str) -> bool:
    return name.startswith("skl2onnx__") or any(part in name for part in ("scan_map", "lax_map", "scan_cdist"))


@pytest.mark.parametrize("model", corpus_models(only=is_map_like))
@pytest.mark.parametrize("fast_math", [False, True])
def test_no_loop_of_single_steps_is_left_where_no_step_needs_another(model, fast_math):
    report = ortscan.explain(model.load(), fast_math=fast_math)
    assert report.loops
    assert all(loop.fate == "removed" or "SCAN-BLOCKS" in [reason.code for reason in loop.reasons] for loop in report.loops)


@pytest.mark.parametrize("model", corpus_models(only=lambda name: "bidir" in name))
def test_both_directions_of_a_layer_become_one_node(model):
    result = ortscan.optimize(model.load(), target="onnx")
    kinds = {node.op_type for node in nodes_within(result.graph)}
    ways = [a.s for node in nodes_within(result.graph) for a in node.attribute if a.name == "direction"]
    assert ways == [b"bidirectional"]
    assert not kinds & {*LOOPS, "ReverseSequence", "Gather", "Range"}
    assert_same_numbers(ort_run(result, model.feeds()), ort_run(model.load(), model.feeds()))


def nodes_within(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from nodes_within(attribute.g)
