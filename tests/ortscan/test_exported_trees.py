"""Exports of torch's `associative_scan` (`tests/support/export_trees.py` made them) become compiled loops or plain operators."""

from collections import Counter
from pathlib import Path

import onnx
import pytest

import ortscan
from tests.support.prefix_trees import prefix_tree

EXPORTED = sorted((Path(__file__).parents[1] / "data" / "trees").glob("*.onnx"))


@pytest.mark.parametrize("path", EXPORTED, ids=lambda path: path.stem)
def test_an_exported_tree_becomes_a_compiled_loop(path: Path) -> None:
    loops = ortscan.explain(path, native=True).loops
    assert [(loop.fate, loop.steps) for loop in loops] == [("compiled", 9)]
    assert ortscan.verify(path, ortscan.optimize(path, native=True)).ok


def test_there_are_exports_of_four_operators() -> None:
    assert [path.stem for path in EXPORTED] == ["linear_reverse", "logaddexp", "matmul", "selective_state"]


@pytest.mark.parametrize("target", ["cpu", "onnx"])
def test_a_tree_of_sums_becomes_a_sum_without_a_loop(target: str) -> None:
    after = ortscan.optimize(prefix_tree("stacked", "sum", 32), target=target)
    operators = Counter(node.op_type for node in after.graph.node)
    assert operators["CumSum"] == 1
    assert operators.keys().isdisjoint({"Slice", "Pad", "Scan"})


def test_a_tree_without_a_closed_form_stays_without_plans() -> None:
    model = prefix_tree("stacked", "linear", 32)
    assert ortscan.optimize(model, target="onnx") == model


def test_a_short_tree_stays_if_blocks_would_be_as_long() -> None:
    model = prefix_tree("doubling", "maximum", 1024)
    assert ortscan.optimize(model) == model


def test_a_tree_over_a_free_number_of_steps_gets_a_warning() -> None:
    model = prefix_tree("doubling", "sum", 16)
    assert not ortscan.explain(model).messages
    free = prefix_tree("stacked", "sum", 16)
    for value in (*free.graph.input, *free.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "T"
    del free.graph.value_info[:]
    (message,) = ortscan.explain(free).messages
    assert "'x0' form a tree like that of associative_scan, over a free number of steps" in message


def test_the_reason_why_a_tree_stays_is_reported() -> None:
    model = prefix_tree("doubling", "sum", 16)
    inner = next(node for node in model.graph.node if node.op_type == "Add")
    model.graph.node.append(onnx.helper.make_node("Exp", [inner.output[0]], ["z"]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [15, 3]))
    (message,) = ortscan.explain(model).messages
    assert "TREE-READ" in message
