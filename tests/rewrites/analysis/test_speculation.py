"""What is said to stand any numbers, run on onnxruntime with the nastiest; what fails on some numbers is said to."""

import subprocess
import sys
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from rewrites.analysis import dependence, speculation
from rewrites.analysis.dependence import cannot_fail
from rewrites.analysis.speculation import node_failing_if_run, node_failing_on_elements
from tests.rewrites.analysis.nasty_values import CASES, Case, model_of
from tests.support.runtime import ort_run


def graph_of(case: Case) -> ir.Graph:
    return ir.from_proto(model_of(case)).graph


@pytest.mark.long
def test_no_operator_that_is_said_to_stand_all_numbers_fails_on_any() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.rewrites.analysis.nasty_values"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = ran.stdout.splitlines()
    assert lines[-1:] == ["done"], (lines[-1:], ran.stderr[-500:])
    assert [line for line in lines if line.startswith("failed")] == []
    said = speculation._PLAIN | speculation._STRUCTURED | speculation._INDEXED | speculation._RECURRENT | dependence._CANNOT_FAIL
    assert said <= {line.split()[1] for line in lines if line.startswith("run")}


def test_the_operators_that_are_run_are_those_that_are_said_to_stand_all_numbers() -> None:
    for case in CASES:
        graph = graph_of(case)
        assert node_failing_on_elements(graph, graph.inputs) is None, case


def test_with_known_sizes_and_constants_that_fit_they_may_run_unwanted() -> None:
    unwanted = {case.op for case in CASES if node_failing_if_run(graph_of(case)) is not None}
    assert unwanted <= {"GroupNormalization", "MeanVarianceNormalization"}  # whose sizes onnx does not infer


F = np.float32
FAILS: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("Gather", [np.ones((2, 3), F), np.array([2])], {}),
    ("Gather", [np.ones((2, 3), F), np.array([-3])], {}),
    ("GatherElements", [np.ones((2, 3), F), np.array([[9, 0, 0]])], {}),
    ("GatherND", [np.ones((2, 3), F), np.array([[0, 3]])], {}),
    ("ScatterElements", [np.ones((2, 3), F), np.array([[2, 0, 0]]), np.ones((1, 3), F)], {}),
    ("ScatterND", [np.ones((2, 3), F), np.array([[-3]]), np.ones((1, 3), F)], {}),
    ("Reshape", [np.ones((2, 3), F), np.array([4, 2])], {}),
    ("Expand", [np.ones((2, 3), F), np.array([3, 2])], {}),
    ("Tile", [np.ones((2, 3), F), np.array([-1, 1])], {}),
    ("Squeeze", [np.ones((2, 3), F), np.array([0])], {}),
    ("Unsqueeze", [np.ones((2, 3), F), np.array([7])], {}),
    ("Split", [np.ones((2, 3), F), np.array([2, 2])], {"axis": 1}),
    ("TopK", [np.ones((2, 3), F), np.array([9])], {}),
    ("CumSum", [np.ones((2, 3), F), np.array(2)], {}),
    ("ReduceSum", [np.ones((2, 3), F), np.array([2])], {}),
    ("Range", [np.array(0), np.array(3), np.array(0)], {}),
    ("ConstantOfShape", [np.array([-1])], {}),
    ("OneHot", [np.array([0]), np.array([0]), np.array([0, 1], F)], {}),
    ("Cast", [np.array(["one"], object)], {"to": 1}),
    ("RNN", [np.ones((2, 1, 3), F), np.ones((1, 2, 3), F), np.ones((1, 2, 2), F), np.ones((1, 4), F), np.array([5], np.int32)], {"hidden_size": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "numbers", "attributes"), FAILS, ids=[op for op, _, _ in FAILS])
def test_what_fails_on_some_numbers_is_said_to(op: str, numbers: list[Any], attributes: dict[str, Any]) -> None:
    model = model_of(Case(op, numbers, attributes, outputs={"Split": 2, "TopK": 2}.get(op, 1)))
    graph = model.graph
    for tensor in graph.initializer:
        graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    del graph.initializer[:]
    read = ir.from_proto(model).graph
    assert node_failing_on_elements(read, read.inputs) is not None
    assert node_failing_if_run(read) is not None
    assert not cannot_fail(read.node(0))
    feeds = {f"x{i}": array for i, array in enumerate(numbers)}
    with pytest.raises(Exception, match=op):
        ort_run(model, feeds, optimised=False)


@pytest.mark.parametrize("op", ["Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "CumSum"])
def test_a_constant_index_that_is_out_of_range_may_fail_where_its_branch_would_not_have_run(op: str) -> None:
    (numbers,) = [given for name, given, _ in FAILS[1:] if name == op]
    data = ["f2x3", *numbers[1:2], *(["f1x3"] if op.startswith("Scatter") else [])]
    assert node_failing_if_run(graph_of(Case(op, data))) is not None
    assert node_failing_if_run(graph_of(Case(op, [data[0], np.zeros_like(numbers[1]), *data[2:]]))) is None
