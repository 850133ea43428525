"""The random Scans: valid, runnable, varied, and restricted as asked."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import onnx
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.order import bodies_of
from tests.support.runtime import ort_run
from tests.support.scans import OPSETS, ScanCase, map_scans, scan_models

DRAW_ONLY = settings(max_examples=300, phases=[Phase.generate], suppress_health_check=list(HealthCheck))


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for body in bodies_of(node):
            yield from _nodes(body)


def _scan(case: ScanCase) -> tuple[onnx.NodeProto, dict[str, Any]]:
    node = next(node for node in case.model.graph.node if node.op_type == "Scan")
    return node, {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


@pytest.mark.long
def test_nearly_all_models_are_valid_and_run() -> None:
    tally: Counter[str] = Counter()

    @DRAW_ONLY
    @given(scan_models())
    def count(case: ScanCase) -> None:
        tally["drawn"] += 1
        try:
            onnx.checker.check_model(case.model, full_check=True)
            ort_run(*case)
        except Exception:  # errors of onnxruntime have no public base class
            return
        tally["run"] += 1

    count()
    assert tally["run"] / tally["drawn"] > 0.98


@pytest.mark.long
def test_models_differ_in_everything_the_dialects_offer() -> None:
    seen: Counter[str] = Counter()

    @DRAW_ONLY
    @given(scan_models())
    def note(case: ScanCase) -> None:
        node, attributes = _scan(case)
        body = attributes["body"]
        batched = case.model.opset_import[0].version < 9
        seen.update([f"opset {case.model.opset_import[0].version}", *attributes])
        seen.update(n.op_type for n in _nodes(body))
        seen["lengths"] += batched and bool(node.input[0])
        seen["stateless"] += len(body.input) == attributes["num_scan_inputs"]
        seen["input scanned twice"] += len(set(node.input)) < len(node.input)
        seen["body initializer"] += bool(body.initializer)
        seen["nested"] += any(n.op_type == "Scan" for n in body.node)
        made = {name for n in body.node for name in n.output} | {v.name for v in [*body.input, *body.initializer]}
        seen["capture"] += any(name not in made for n in body.node for name in n.input if name)

    note()
    expected = [f"opset {opset}" for opset in OPSETS]
    expected += ["directions", "scan_input_axes", "scan_output_axes", "scan_input_directions", "scan_output_directions"]
    expected += ["lengths", "stateless", "input scanned twice", "body initializer", "nested", "capture"]
    expected += ["If", "MatMul", "Gemm", "ReduceSum", "Transpose", "Reshape", "Concat", "Split", "Slice", "Gather", "Constant"]
    assert [what for what in expected if not seen[what]] == []


@settings(max_examples=30)
@given(map_scans())
def test_maps_hand_their_states_through(case: ScanCase) -> None:
    _, attributes = _scan(case)
    body: onnx.GraphProto = attributes["body"]
    sources = {n.output[0]: n.input[0] for n in body.node if n.op_type == "Identity"}
    states = len(body.input) - attributes["num_scan_inputs"]
    assert [sources[o.name] for o in body.output[:states]] == [i.name for i in body.input[:states]]


@settings(max_examples=30)
@given(scan_models(opset=18, dtypes=("float32",), axes=False, directions=False, nested=False, max_states=1, max_scan_inputs=1))
def test_options_restrict_what_is_drawn(case: ScanCase) -> None:
    node, attributes = _scan(case)
    assert case.model.opset_import[0].version == 18
    assert attributes["num_scan_inputs"] == 1
    assert len(node.input) <= 2
    assert not any(name.startswith("scan_") and any(v) for name, v in attributes.items() if isinstance(v, list))
    assert all(array.dtype == "float32" for array in case.feeds.values())


@pytest.mark.long
@settings(max_examples=40)
@given(scan_models(direct_outputs=True, nested=False))
def test_bodies_that_return_inputs_mean_what_an_identity_would(case: ScanCase) -> None:
    repaired = onnx.ModelProto.FromString(case.model.SerializeToString())
    for node in repaired.graph.node:
        for body in bodies_of(node):
            copies = [onnx.helper.make_node("Identity", [o.name], [f"copy_{i}"]) for i, o in enumerate(body.output)]
            body.node.extend(copies)
            for output, copy in zip(body.output, copies, strict=True):
                output.name = copy.output[0]
    assert_same_numbers(run_model(*case), ort_run(repaired, case.feeds), rtol=1e-4, atol=1e-5)
