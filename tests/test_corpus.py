"""Models as real exporters write them: complete, optimised for all targets, and with their loops written out."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import ortscan
from ortscan.report.codes import lookup
from ortscan.targets import TARGETS
from rewrites.base.report import RewriteReport
from rewrites.registry import RULES
from tests.support.corpus import CorpusModel, big_corpus, corpus_models, shipped_corpus
from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run, ort_session
from tests.support.standalone import loops_of_length

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
def test_an_exported_model_comes_out_equal_valid_and_with_its_interface_and_a_second_call_changes_nothing(model):
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
    twice = ortscan.optimize(result, verify=False)
    assert [node.op_type for node in nodes_within(twice.graph)] == [node.op_type for node in nodes_within(result.graph)]
    assert twice == result


ON_RECURRENCES = {rule.name for rule in RULES if rule.phase == "recurrence"}
UNLIKE = [
    "torch__scan_biquad",
    "torch__scan_linrec_dyn",
    "tf2onnx__keras_rnn_minimal",
    "torch__while_sum",
    "jax2onnx__linen_rnn_mgu",
]


def assert_reasons_fit(report: RewriteReport) -> None:
    """Assert that each loop that is left has reasons, and that none contradicts its fate, another reason or the target."""
    assert [loop.where for loop in report.loops if bool(loop.reasons) != (loop in report.loops_left)] == []
    for loop in report.loops_left:
        codes = {reason.code for reason in loop.reasons}
        assert all(map(lookup, codes))
        assert ("FALLBACK" in codes) == loop.fallback
        if "RECURRENCE" in codes:
            assert loop.is_a == "recurrence"
            assert not ON_RECURRENCES & {reason.rule for reason in loop.reasons}
        if not TARGETS[report.target].loops:
            assert not any(code.startswith("COST-") for code in codes)


@MODELS
def test_every_loop_left_has_reasons_that_fit(model):
    assert_reasons_fit(ortscan.explain(model.load()))


@pytest.mark.long
@pytest.mark.parametrize("target", ["onnx", "cuda", "qnn", "webgpu"])
@pytest.mark.parametrize("model", corpus_models(only=UNLIKE.__contains__))
def test_reasons_fit_on_other_targets(model, target):
    assert_reasons_fit(ortscan.explain(model.load(), target=target))


@pytest.mark.long
@pytest.mark.parametrize("model", corpus_models(only=UNLIKE.__contains__))
def test_compiled_loops_have_no_reasons(model):
    assert_reasons_fit(ortscan.explain(model.load(), native=True))


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
    result = ortscan.optimize(model.load(), target="onnx", verify=False)
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


STOPPED_BY_DATA = {"jax2onnx__while_sum", "tf2onnx__tf_while_sum", "torch__script_while"}
CONTROL_FLOW, RECURRENT = {"Scan", "Loop", "If"}, {"RNN", "GRU", "LSTM"}


def ops(model: onnx.ModelProto) -> set[str]:
    """The operators of all graphs, bodies and functions included."""
    loaded = ir.from_proto(model)
    return {node.op_type for graph in (loaded.graph, *loaded.functions.values()) for node in graph.all_nodes()}


def fixed(model: CorpusModel) -> dict[str, list[int]]:
    return {name: list(array.shape) for name, array in model.feeds().items()}


@pytest.mark.parametrize("model", corpus_models(only=lambda name: name not in STOPPED_BY_DATA))
def test_with_its_shapes_fixed_a_model_has_neither_loops_nor_recurrent_nodes_where_the_target_has_none(model):
    after = ortscan.optimize(model.load(), target="coreml", fix_shapes=fixed(model), verify=False)
    assert not ops(after) & (CONTROL_FLOW | RECURRENT)
    expected = ort_run(model.load(), model.feeds())
    assert_same_numbers(ort_run(after, model.feeds()), expected, rtol=model.tolerance, atol=model.tolerance)
    declared = [[dim.dim_value for dim in info.type.tensor_type.shape.dim] for info in after.graph.output]
    unfixed = [(shape, value.shape) for shape, value in zip(declared, expected, strict=True) if tuple(shape) != value.shape]
    assert all(0 in shape for shape, _ in unfixed)


LOOPLESS = ("directml", "webgpu", "nnapi", "qnn")
TARGETED = [
    pytest.param(*param.values, LOOPLESS[(place + turn) % 4], id=f"{param.id}-{LOOPLESS[(place + turn) % 4]}")
    for place, param in enumerate(corpus_models(shipped_only=True))
    for turn in (0, 1)
]
"""Two targets for each model."""


@pytest.mark.parametrize(("model", "target"), TARGETED)
def test_so_for_the_other_targets_without_loops(model, target):
    after = ortscan.optimize(model.load(), target=target, fix_shapes=fixed(model), verify=False)
    assert not ops(after) & (CONTROL_FLOW - TARGETS[target].control_flow)
    assert ops(after) & RECURRENT <= set(TARGETS[target].recurrent)
    assert_same_numbers(
        ort_run(after, model.feeds()), ort_run(model.load(), model.feeds()), rtol=model.tolerance, atol=model.tolerance
    )


LONG = [pytest.param(*param.values, 40, id=f"{param.id}-40") for param in corpus_models(shipped_only=True)[::6]]
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


@pytest.mark.parametrize("model", corpus_models())
def test_onnxruntime_and_the_oracle_agree_on(model: CorpusModel) -> None:
    expected = run_model(model.load(), model.feeds())
    assert_same_numbers(ort_run(model.path, model.feeds()), expected, rtol=model.tolerance, atol=model.tolerance)


@pytest.mark.parametrize("model", corpus_models())
def test_the_framework_computed_the_same_as(model: CorpusModel) -> None:
    results = ort_run(model.path, model.feeds())
    recorded = model.framework_outputs()
    assert recorded
    for position, array in recorded.items():
        same = np.allclose(results[position], array, rtol=1e-3, atol=2e-3)
        assert same == model.faithful


def test_the_shipped_corpus_is_small_and_holds_every_kind_of_loop() -> None:
    shipped = [param.values[0] for param in corpus_models(shipped_only=True)]
    assert sum(file.stat().st_size for file in shipped_corpus().iterdir()) < 300_000
    loops = {(node.op_type, model.load().opset_import[0].version < 9) for model in shipped for node in model.load().graph.node}
    assert {("Scan", True), ("Scan", False), ("Loop", False)} <= loops


def test_the_larger_corpus_adds_to_the_shipped_one() -> None:
    if big_corpus() is None:
        pytest.skip("no larger corpus: set ORTSCAN_CORPUS to its folder to test with it")
    assert len(corpus_models()) > len(corpus_models(shipped_only=True))
    for model in [param.values[0] for param in corpus_models(loadable=False) if not param.values[0].loads]:
        with pytest.raises(Exception, match="ONNXRuntimeError"):
            ort_session(model.path)
