"""Models of one RNN, GRU or LSTM node in every variant, and what the operator's text says they compute."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.support.recurrent_oracle import GATES, recurrent
from tests.support.runtime import numpy_dtype

__all__ = ["INPUTS", "SIZE", "WIDTH", "OneNode"]

WIDTH, SIZE = 3, 2
"""Features of the input, and hidden features."""
KINDS = ("RNN", "GRU", "LSTM")
_FLOAT, _INT32 = TensorProto.FLOAT, TensorProto.INT32


@dataclass(frozen=True)
class OneNode:
    """One node. `attributes` as written; `extra`: optional inputs it has (B, lengths, initial_h, initial_c, P).

    `steps`, `rows`: numbers, or names where the size is free. `lengths_shape`: `[B]`, `[1, B]` or `[B, 1]`.
    """

    kind: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    extra: frozenset[str] = frozenset()
    element: int = _FLOAT
    lengths_type: int = _INT32
    lengths_shape: tuple[str, ...] = ("B",)
    steps: int | str = "T"
    rows: int | str = "B"
    opset: int = 22
    names_hidden_size: bool = True
    outputs: tuple[str, ...] = ("y", "y_h", "y_c")

    @property
    def directions(self) -> int:
        return 2 if self.attributes.get("direction") == "bidirectional" else 1

    @property
    def batch_first(self) -> bool:
        return self.attributes.get("layout", 0) == 1

    def model(self) -> onnx.ModelProto:
        names = ["x", "W", "R", *(name if name in self.extra else "" for name in INPUTS[self.kind][3:])]
        while not names[-1]:
            names.pop()
        dirs, t, b = self.directions, self.steps, self.rows
        state = [b, dirs, SIZE] if self.batch_first else [dirs, b, SIZE]
        shapes = {"x": [b, t, WIDTH] if self.batch_first else [t, b, WIDTH], "initial_h": state, "initial_c": state}
        feeds = [helper.make_tensor_value_info(name, self.element, shapes[name]) for name in names if name in shapes]
        if "lengths" in names:
            shape = [b if size == "B" else 1 for size in self.lengths_shape]
            feeds.append(helper.make_tensor_value_info("lengths", self.lengths_type, shape))
        given = {"hidden_size": SIZE} if self.names_hidden_size else {}
        outputs = self.outputs[: len(self.result_shapes())]
        node = helper.make_node(self.kind, names, list(outputs), name="cell", **{**given, **self.attributes})
        results = [
            helper.make_tensor_value_info(name, self.element, shape)
            for name, shape in zip(outputs, self.result_shapes(), strict=True)
            if name
        ]
        weights = [numpy_helper.from_array(array, name) for name, array in self.weights().items()]
        graph = helper.make_graph([node], "g", feeds, results, weights)
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", self.opset)])

    def result_shapes(self) -> list[list[int | str]]:
        dirs, t, b = self.directions, self.steps, self.rows
        if self.batch_first:
            shapes = [[b, t, dirs, SIZE], [b, dirs, SIZE], [b, dirs, SIZE]]
        else:
            shapes = [[t, dirs, b, SIZE], [dirs, b, SIZE], [dirs, b, SIZE]]
        return shapes[: 3 if self.kind == "LSTM" else 2]

    def weights(self) -> dict[str, np.ndarray]:
        rng, rows, dirs = np.random.default_rng(3), GATES[self.kind] * SIZE, self.directions
        arrays = {
            "W": rng.standard_normal((dirs, rows, WIDTH)),
            "R": rng.standard_normal((dirs, rows, SIZE)),
            "B": rng.standard_normal((dirs, 2 * rows)),
            "P": rng.standard_normal((dirs, 3 * SIZE)),
        }
        return {name: array.astype(self._dtype) for name, array in arrays.items() if name in {"W", "R"} | self.extra}

    def feeds(self, steps: int, rows: int, lengths: list[int] | None = None) -> dict[str, np.ndarray]:
        rng, dirs = np.random.default_rng(steps * 10 + rows), self.directions
        state = (rows, dirs, SIZE) if self.batch_first else (dirs, rows, SIZE)
        found = {"x": rng.standard_normal((rows, steps, WIDTH) if self.batch_first else (steps, rows, WIDTH))}
        found |= {name: rng.standard_normal(state) for name in ("initial_h", "initial_c") if name in self.extra}
        found = {name: array.astype(self._dtype) for name, array in found.items()}
        if "lengths" in self.extra:
            given = [steps - i % (steps + 1) for i in range(rows)] if lengths is None else lengths
            shape = [rows if size == "B" else 1 for size in self.lengths_shape]
            found["lengths"] = np.array(given, numpy_dtype(self.lengths_type)).reshape(shape)
        return found

    def expected(self, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        given = {**self.weights(), **feeds}
        arrays = [given.get(name) for name in INPUTS["LSTM"]]
        known = {key: value for key, value in self.attributes.items() if key != "output_sequence"}
        results = recurrent(self.kind, *arrays, **known)
        return [result.astype(self._dtype) for result, name in zip(results, self.outputs, strict=False) if name]

    @property
    def _dtype(self) -> np.dtype[Any]:
        return numpy_dtype(self.element)


INPUTS = {
    "RNN": ("x", "W", "R", "B", "lengths", "initial_h"),
    "GRU": ("x", "W", "R", "B", "lengths", "initial_h"),
    "LSTM": ("x", "W", "R", "B", "lengths", "initial_h", "initial_c", "P"),
}
