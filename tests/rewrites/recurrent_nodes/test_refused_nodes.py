"""Every variant of RNN, GRU and LSTM that onnxruntime refuses runs after `optimize`, with the numbers of the operator's text."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from tests.rewrites.recurrent_nodes.nodes import INPUTS, KINDS, OneNode
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

DIRECTIONS = ("forward", "reverse", "bidirectional")
STATES = frozenset({"initial_h", "initial_c"})
ALL = frozenset({"B", "lengths", "initial_h", "initial_c", "P"})
DOUBLE, BFLOAT16, INT64 = TensorProto.DOUBLE, TensorProto.BFLOAT16, TensorProto.INT64
PLAIN = frozenset({"B"})

REFUSED: Mapping[str, Mapping[str, Any]] = {
    "layout 1": {"attributes": {"layout": 1}, "extra": PLAIN},
    "layout 1 with all inputs": {"attributes": {"layout": 1}, "extra": ALL},
    "layout 1 of float16": {"attributes": {"layout": 1}, "extra": PLAIN | STATES, "element": TensorProto.FLOAT16},
    "no hidden_size": {"names_hidden_size": False, "extra": STATES},
    "clip of 0": {"attributes": {"clip": 0.0}},
    "clip below 0": {"attributes": {"clip": -1.0}, "extra": STATES},
    "layout 1 with a clip of 0": {"attributes": {"layout": 1, "clip": 0.0}, "extra": PLAIN},
    "output_sequence": {"attributes": {"output_sequence": 1}},
    "lengths int64": {"extra": frozenset({"lengths"}), "lengths_type": INT64},
    "lengths [1, B]": {"extra": frozenset({"lengths"}) | STATES, "lengths_shape": ("1", "B")},
    "lengths int64 [B, 1]": {"extra": ALL, "lengths_type": INT64, "lengths_shape": ("B", "1")},
    "bfloat16": {"element": BFLOAT16, "extra": PLAIN},
    "bfloat16 with all inputs and layout 1": {"element": BFLOAT16, "extra": ALL, "attributes": {"layout": 1}},
    "double": {"element": DOUBLE},
    "double with biases and states": {"element": DOUBLE, "extra": PLAIN | STATES},
    "double with all inputs": {"element": DOUBLE, "extra": ALL},
    "double with all inputs and layout 1": {"element": DOUBLE, "extra": ALL, "attributes": {"layout": 1}},
    "double with clip": {"element": DOUBLE, "extra": ALL, "attributes": {"clip": 0.25}},
    "double of known sizes": {"element": DOUBLE, "extra": ALL, "steps": 3, "rows": 2},
    "double and all else": {
        "element": DOUBLE,
        "extra": ALL,
        "attributes": {"layout": 1, "clip": 0.5},
        "names_hidden_size": False,
        "lengths_type": INT64,
        "lengths_shape": ("1", "B"),
    },
    "double of opset 7": {"element": DOUBLE, "extra": ALL, "opset": 7},
    "opset 1": {"opset": 1, "extra": PLAIN, "attributes": {"output_sequence": 1}},
    "opset 6 with all inputs": {"opset": 6, "extra": ALL},
    "double of opset 6": {"opset": 6, "element": DOUBLE, "extra": PLAIN},
}
RUN_AS_RNN = {"clip of 0", "clip below 0"}
"""What onnxruntime takes from an RNN only."""
VARIANTS = [
    (kind, name, direction)
    for kind in KINDS
    for place, name in enumerate(REFUSED)
    for direction in (DIRECTIONS[(place + KINDS.index(kind)) % 2], "bidirectional")
    if not (kind == "RNN" and name in RUN_AS_RNN)
]


def variant(kind: str, name: str, direction: str = "forward", **more: Any) -> OneNode:
    wanted = dict(REFUSED[name])
    attributes = {"direction": direction, **wanted.pop("attributes", {}), **more}
    extra = frozenset(wanted.pop("extra", ())) & {*INPUTS[kind]}
    return OneNode(kind, attributes, extra, **wanted)


def optimised(node: OneNode, **options: Any) -> onnx.ModelProto:
    loaded, _ = rewritten(node.model(), debug=True, **options)
    result = to_caller_type(loaded)
    onnx.checker.check_model(result, full_check=True)
    return result


def agrees(node: OneNode, result: onnx.ModelProto, steps: int, rows: int, lengths: list[int] | None = None) -> None:
    feeds = node.feeds(steps, rows, lengths)
    tight = node.element == DOUBLE
    assert_same_numbers(
        ort_run(result, feeds), node.expected(feeds), 1e-12 if tight else 1e-5, 1e-12 if tight else 1e-6, f"{steps} x {rows}: "
    )


def runs(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> bool:
    try:
        ort_run(model, feeds)
    except Exception:  # onnxruntime raises its own classes and bare RuntimeError
        return False
    return True


@pytest.mark.parametrize(("kind", "name", "direction"), VARIANTS)
def test_what_onnxruntime_refuses_runs_with_the_numbers_of_the_text(kind, name, direction):
    node = variant(kind, name, direction)
    assert not runs(node.model(), node.feeds(3, 2))
    result = optimised(node)
    sizes = [(3, 2)] if node.steps == 3 else [(3, 2), (1, 1), (4, 6)]
    if node.steps == "T":
        sizes += [(0, 2), (2, 0), (0, 0)]
    for steps, rows in sizes:
        agrees(node, result, steps, rows)
