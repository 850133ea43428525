"""onnx's own tests of RNN, GRU and LSTM, with the results onnx gives for them."""

import importlib
import warnings
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from tests.support.runtime import ort_run

MODULES = ("gru", "lstm", "rnn")


@cache
def cases() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case import node as package

        for name in MODULES:
            importlib.import_module(f"{package.__name__}.{name}")
    return {case.name: case for case in package._NodeTestCases if case.model.graph.node[0].op_type in ("GRU", "LSTM", "RNN")}


def in_reach(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in an opset and a format that onnxruntime takes."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = 10
    copy.opset_import[0].version = min(copy.opset_import[0].version, 22)
    return copy


@pytest.mark.parametrize("name", sorted(cases()))
def test_onnx_says_the_same(name):
    case = cases()[name]
    model = in_reach(case.model)
    result = to_caller_type(rewritten(model, debug=True)[0])
    assert not any(attribute.name == "layout" and attribute.i for node in result.graph.node for attribute in node.attribute)
    for inputs, expected in case.data_sets:
        feeds = dict(zip((info.name for info in model.graph.input), inputs, strict=True))
        for found, wanted in zip(ort_run(result, feeds), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-6)


def test_there_are_tests_with_the_batch_axis_first():
    assert len([name for name in cases() if "batchwise" in name]) >= 3
