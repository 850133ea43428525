"""Models as real exporters write them, for targets that run no loops; and their loops at 16 and 64 steps, written out."""

import onnx
import onnx_ir as ir
import pytest

import ortscan
from ortscan.targets import TARGETS
from tests.support.corpus import CorpusModel, corpus_models
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.standalone import loops_of_length

STOPPED_BY_DATA = {"jax2onnx__while_sum", "tf2onnx__tf_while_sum", "torch__script_while", "torch__while_sum"}
CONTROL_FLOW, RECURRENT = {"Scan", "Loop", "If"}, {"RNN", "GRU", "LSTM"}


def ops(model: onnx.ModelProto) -> set[str]:
    """The operators of all graphs, bodies and functions included."""
    loaded = ir.from_proto(model)
    return {node.op_type for graph in (loaded.graph, *loaded.functions.values()) for node in graph.all_nodes()}


def fixed(model: CorpusModel) -> dict[str, list[int]]:
    return {name: list(array.shape) for name, array in model.feeds().items()}


@pytest.mark.parametrize("model", corpus_models(only=lambda name: name not in STOPPED_BY_DATA))
def test_with_its_shapes_fixed_a_model_has_neither_loops_nor_recurrent_nodes_where_the_target_has_none(model):
    after = ortscan.optimize(model.load(), target="coreml", fix_shapes=fixed(model))
    assert not ops(after) & (CONTROL_FLOW | RECURRENT)
    expected = ort_run(model.load(), model.feeds())
    assert_same_numbers(ort_run(after, model.feeds()), expected, rtol=model.tolerance, atol=model.tolerance)
    declared = [[dim.dim_value for dim in info.type.tensor_type.shape.dim] for info in after.graph.output]
    unfixed = [(shape, value.shape) for shape, value in zip(declared, expected, strict=True) if tuple(shape) != value.shape]
    assert all(0 in shape for shape, _ in unfixed)


@pytest.mark.parametrize("model", corpus_models(shipped_only=True))
@pytest.mark.parametrize("target", ["directml", "webgpu", "nnapi", "qnn"])
def test_so_for_the_other_targets_without_loops(model, target):
    after = ortscan.optimize(model.load(), target=target, fix_shapes=fixed(model))
    assert not ops(after) & (CONTROL_FLOW - TARGETS[target].control_flow)
    assert ops(after) & RECURRENT <= set(TARGETS[target].recurrent)
    assert_same_numbers(
        ort_run(after, model.feeds()), ort_run(model.load(), model.feeds()), rtol=model.tolerance, atol=model.tolerance
    )


LONG = [pytest.param(*param.values, 64, id=f"{param.id}-64") for param in corpus_models(shipped_only=True)]
SHORT = [pytest.param(*param.values, 16, id=f"{param.id}-16") for param in corpus_models(only=lambda name: "post__" not in name)]


@pytest.mark.parametrize(("model", "steps"), SHORT + LONG)
def test_each_loop_of_known_length_is_written_out_in_no_more_nodes_than_its_steps_have(model, steps):
    for loop in loops_of_length(model.load(), model.feeds(), steps):
        after = ortscan.optimize(loop.model, passes=["unroll"], max_unroll=steps, verify=False)
        assert not ops(after) & {"Scan", "Loop"}
        reading_and_stacking = 2 * (len(loop.feeds) + len(loop.model.graph.output))
        assert len(after.graph.node) <= steps * loop.body + reading_and_stacking
        expected = ort_run(loop.model, loop.feeds)
        assert_same_numbers(ort_run(after, loop.feeds), expected, rtol=max(1e-4, model.tolerance), atol=model.tolerance)
        reduced_first = ortscan.optimize(loop.model, target="coreml", verify=False)
        assert len(reduced_first.graph.node) <= steps * loop.body + 2
