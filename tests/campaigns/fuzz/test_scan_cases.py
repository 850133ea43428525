"""The random Scans differ in everything that the dialects offer."""

from collections import Counter

import onnx
import pytest

from tests.campaigns.fuzz.edits import graphs_of
from tests.campaigns.fuzz.scan_cases import OPSETS, drawn_scans


@pytest.mark.long
def test_models_differ_in_everything_that_the_dialects_offer() -> None:
    tally: Counter[str] = Counter()
    for opset in OPSETS:
        for case in drawn_scans(24 if opset == 8 else 8, opset, "random_body", "passengers", aliased=opset % 2 == 0):
            node = next(node for node in case.model.graph.node if node.op_type == "Scan")
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            body = attributes["body"]
            inner = {name for n in body.node for name in n.output} | {v.name for v in [*body.input, *body.initializer]}
            tally.update(list(attributes))
            tally.update(n.op_type for graph in graphs_of(case.model) for n in graph.node)
            tally["lengths"] += opset == 8 and bool(node.input[0])
            tally["body initializer"] += bool(body.initializer)
            tally["capture"] += any(name not in inner for n in body.node for name in n.input if name)
            tally["input returned"] += bool({v.name for v in body.input} & {v.name for v in body.output})
            tally["returned twice"] += len({v.name for v in body.output}) < len(body.output)
    expected = ["directions", "scan_input_axes", "scan_output_axes", "scan_input_directions", "scan_output_directions"]
    expected += ["lengths", "body initializer", "capture", "input returned", "returned twice"]
    expected += ["If", "MatMul", "Gemm", "ReduceSum", "Transpose", "Reshape", "Concat", "Split", "Slice", "Gather", "Constant"]
    assert [name for name in expected if not tally[name]] == []
