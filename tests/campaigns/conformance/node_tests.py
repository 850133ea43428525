"""Collects the node tests that the onnx package generates, in an opset that onnxruntime runs."""

import importlib
import pkgutil
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["SLOW_MODULES", "NodeTest", "node_tests"]

SLOW_MODULES = ("averagepool", "lppool", "maxpool")
"""Modules that compute their expected results in Python loops, and so take most of the time to collect."""

_NEWEST, _OLDEST = 26, 9
_NEWEST_IR = 13


@dataclass(frozen=True)
class NodeTest:
    """One test: ``op`` is the operator it is about, also where ``model`` holds the nodes of its function instead.

    ``inputs``: an array, a list of arrays (a sequence) or None (an absent optional) by name.
    """

    name: str
    op: str
    model: onnx.ModelProto
    inputs: dict[str, Any]


@cache
def node_tests(skip: Collection[str] = ()) -> tuple[NodeTest, ...]:
    """Give the tests of all modules but those to ``skip``, in the order of their names, as far as onnxruntime has their opset."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case import node as package

        for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda one: one.name):
            if module.name not in skip:
                importlib.import_module(f"{package.__name__}.{module.name}")
        found = list(package._NodeTestCases)
    owners = {case.name: _operator(case.model.graph.node[0]) for case in found if "_expanded" not in case.name}
    tests = []
    for case in sorted(found, key=lambda one: one.name):
        model = _in_reach(case.model)
        if model is not None:
            names = [value.name for value in model.graph.input]
            inputs = {name: _plain(value) for name, value in zip(names, case.data_sets[0][0], strict=False)}
            tests.append(NodeTest(case.name, owners[case.name.partition("_expanded")[0]], model, inputs))
    return tuple(tests)


def _operator(node: onnx.NodeProto) -> str:
    return node.op_type if not node.domain else f"{node.domain}.{node.op_type}"


def _in_reach(original: onnx.ModelProto) -> onnx.ModelProto | None:
    """Give the model in an opset that has Scan and that onnxruntime takes, where its operators mean the same there, or None."""
    model = onnx.ModelProto()
    model.CopyFrom(original)
    model.ir_version = min(_NEWEST_IR, max(8, model.ir_version))
    standard = next((one for one in model.opset_import if one.domain in ("", "ai.onnx")), None)
    if standard is None:
        model.opset_import.append(helper.make_opsetid("", 18))
        return model
    wanted = min(_NEWEST, max(_OLDEST, standard.version))
    if wanted != standard.version:
        nodes = [node for node in model.graph.node if node.domain in ("", "ai.onnx")]
        if any(_since(node.op_type, wanted) != _since(node.op_type, standard.version) for node in nodes):
            return None
        standard.version = wanted
    return model


def _since(op_type: str, opset: int) -> int | None:
    try:
        return int(onnx.defs.get_schema(op_type, opset).since_version)
    except onnx.defs.SchemaError:
        return None


def _plain(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
