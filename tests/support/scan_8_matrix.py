"""Every form of an opset-8 Scan: models and feeds for each combination of its features."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

__all__ = ["Form", "some_forms"]

DIRECTIONS = ("forward", "backward", "mixed")
LENGTHS = ("none", "empty name", "ragged input", "full input", "ragged constant", "full constant", "one column")
ROWS = (1, 3, "B")
STATES = (0, 1, 2, 3)
INPUTS = (1, 2, 3)
OUTPUTS = (0, 1, 2, 3)
DTYPES = ("float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool", "str")
NESTED = ("none", "If", "Loop", "Scan")
SHAPES = ((), (2,), (2, 3))

_COMBINES = {"float32": "Add", "float64": "Add", "float16": "Add", "int32": "Add", "int64": "Add", "bool": "Xor"}
_STEPS = 4


@dataclass(frozen=True)
class Form:
    """A combination. ``rows`` and ``steps`` are numbers, or names of free dimensions."""

    direction: str
    lengths: str
    rows: int | str
    states: int
    inputs: int
    outputs: int
    dtype: str
    nested: str
    shape: tuple[int, ...]

    def model(self) -> onnx.ModelProto:
        """Build the model; it captures ``w`` in its body."""
        opset = [helper.make_opsetid("", 8)]
        return helper.make_model(self._graph(), ir_version=4, opset_imports=opset)

    def feeds(self, rows: int = 3) -> dict[str, Any]:
        """Return random feeds. ``rows`` is used if the model leaves it free."""
        rng = np.random.default_rng(0)
        batch = self.rows if isinstance(self.rows, int) else rows
        feeds = {f"s{i}": _random(rng, self.dtype, (batch, *self.shape)) for i in range(self.states)}
        feeds |= {f"x{i}": _random(rng, self.dtype, (batch, _STEPS, *self.shape)) for i in range(self.inputs)}
        feeds["w"] = _random(rng, self.dtype, self.shape)
        if self.lengths in ("ragged input", "full input", "one column"):
            lengths = np.arange(batch) % _STEPS + 1 if self.lengths != "full input" else np.full(batch, _STEPS)
            feeds["lens"] = lengths.reshape(-1, 1) if self.lengths == "one column" else lengths
        if self.nested == "If":
            feeds["flag"] = np.array(True)
        return feeds

    def _graph(self) -> onnx.GraphProto:
        kind = _element_type(self.dtype)
        steps = _STEPS if isinstance(self.rows, int) else "T"
        info = helper.make_tensor_value_info
        inputs = [info(f"s{i}", kind, [self.rows, *self.shape]) for i in range(self.states)]
        inputs += [info(f"x{i}", kind, [self.rows, steps, *self.shape]) for i in range(self.inputs)]
        inputs.append(info("w", kind, self.shape))
        if "lens" in (feeds := self.feeds()):
            inputs.append(info("lens", onnx.TensorProto.INT64, [self.rows, 1][: feeds["lens"].ndim]))
        if self.nested == "If":
            inputs.append(info("flag", onnx.TensorProto.BOOL, []))
        weights = []
        if "constant" in self.lengths:
            rows = self.rows if isinstance(self.rows, int) else 3
            lengths = np.arange(rows) % _STEPS + 1 if "ragged" in self.lengths else np.full(rows, _STEPS)
            weights.append(onnx.numpy_helper.from_array(lengths.astype(np.int64), "lens"))
        outputs = [info(f"f{i}", kind, [self.rows, *self.shape]) for i in range(self.states)]
        outputs += [info(f"y{i}", kind, [self.rows, steps, *self.shape]) for i in range(self.outputs)]
        lens = "" if self.lengths in ("none", "empty name") else "lens"
        operands = [lens, *(f"s{i}" for i in range(self.states)), *(f"x{i}" for i in range(self.inputs))]
        reverse = {"forward": [0] * 3, "backward": [1] * 3, "mixed": [1, 0, 1]}[self.direction][: self.inputs]
        attributes: dict[str, Any] = {} if self.direction == "forward" else {"directions": reverse}
        node = helper.make_node(
            "Scan",
            operands,
            [value.name for value in outputs],
            "the scan",
            body=self._body(),
            num_scan_inputs=self.inputs,
            **attributes,
        )
        return helper.make_graph([node], "g", inputs, outputs, weights)

    def _body(self) -> onnx.GraphProto:
        kind, info, combine = _element_type(self.dtype), helper.make_tensor_value_info, _COMBINES.get(self.dtype)
        nodes = list(self._nested_nodes(combine))
        for i in range(self.states):
            x = "n" if i == 0 else f"a{i % self.inputs}"
            nodes.append(
                helper.make_node(combine, [f"h{i}", x], [f"g{i}"]) if combine else helper.make_node("Identity", [x], [f"g{i}"])
            )
        for i in range(self.outputs):
            source = f"h{i % self.states}" if self.states else f"a{i % self.inputs}"
            operands = [source, "n" if i % 2 else "w"]
            nodes.append(
                helper.make_node(combine, operands, [f"o{i}"]) if combine else helper.make_node("Identity", [source], [f"o{i}"])
            )
        inputs = [info(f"h{i}", kind, self.shape) for i in range(self.states)]
        inputs += [info(f"a{i}", kind, self.shape) for i in range(self.inputs)]
        outputs = [info(f"g{i}", kind, self.shape) for i in range(self.states)]
        outputs += [info(f"o{i}", kind, self.shape) for i in range(self.outputs)]
        return helper.make_graph(nodes, "body", inputs, outputs)

    def _nested_nodes(self, combine: str | None) -> Iterator[onnx.NodeProto]:
        """Compute ``n`` from the first scan input by control flow that captures from the body and from outside."""
        kind, info, make = _element_type(self.dtype), helper.make_tensor_value_info, helper.make_node
        same = make(combine, ["a0", "w"], ["p"]) if combine else make("Identity", ["w"], ["p"])
        if self.nested == "none":
            yield make("Identity", ["a0"], ["n"])
        elif self.nested == "If":
            other = make("Identity", ["a0"], ["q"])
            then, otherwise = [
                helper.make_graph([each], each.output[0], [], [info(each.output[0], kind, self.shape)]) for each in (same, other)
            ]
            yield make("If", ["flag"], ["n"], then_branch=then, else_branch=otherwise)
        elif self.nested == "Loop":
            step = make(combine, ["c", "a0"], ["d"]) if combine else make("Identity", ["a0"], ["d"])
            flags = [info(name, onnx.TensorProto.BOOL, []) for name in ("on", "go")]
            body = helper.make_graph(
                [make("Identity", ["on"], ["go"]), step],
                "loop",
                [info("i", onnx.TensorProto.INT64, []), flags[0], info("c", kind, self.shape)],
                [flags[1], info("d", kind, self.shape)],
            )
            yield make("Constant", [], ["trips"], value=helper.make_tensor("trips", onnx.TensorProto.FLOAT, [], [2.0]))
            yield make("Cast", ["trips"], ["m"], to=onnx.TensorProto.INT64)
            yield make("Loop", ["m", "", "w"], ["n"], body=body)
        else:
            inner = helper.make_graph(
                [make(combine, ["c", "e"], ["d"]) if combine else make("Identity", ["e"], ["d"])],
                "inner",
                [info("c", kind, self.shape), info("e", kind, self.shape)],
                [info("d", kind, self.shape)],
            )
            yield make("Unsqueeze", ["w"], ["w1"], axes=[0])
            yield make("Unsqueeze", ["a0"], ["b0"], axes=[0, 1])
            yield make("Scan", ["", "w1", "b0"], ["n1"], "the inner scan", body=inner, num_scan_inputs=1)
            yield make("Squeeze", ["n1"], ["n"], axes=[0])


def _element_type(dtype: str) -> int:
    return onnx.TensorProto.STRING if dtype == "str" else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def _random(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    if dtype == "str":
        return rng.choice(np.array(["a", "bb", "", "δ"], dtype=object), size=shape) if shape else np.array("c", dtype=object)
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.startswith("float"):
        return np.asarray(rng.standard_normal(shape)).astype(dtype)
    return np.asarray(rng.integers(0, 9, shape)).astype(dtype)


def some_forms(count: int, seed: int = 0) -> list[Form]:
    """Return a random choice that contains every pair of values of two features, and more forms up to ``count``."""
    rng = np.random.default_rng(seed)
    parts = [DIRECTIONS, LENGTHS, ROWS, STATES, INPUTS, OUTPUTS, DTYPES, NESTED, SHAPES]
    open_pairs = {
        (i, a, j, b)
        for (i, one), (j, other) in itertools.combinations(enumerate(parts), 2)
        for a in one
        for b in other
        if (i, a, j, b) != (3, 0, 5, 0)
    }
    chosen: list[Form] = []
    while open_pairs or len(chosen) < count:
        draws = [[part[rng.integers(len(part))] for part in parts] for _ in range(20)]
        draws = [draw for draw in draws if draw[3] + draw[5]]
        best = max(draws, key=lambda draw: len(_pairs(draw) & open_pairs))
        open_pairs -= _pairs(best)
        chosen.append(Form(*best))
    return chosen


def _pairs(draw: list[Any]) -> set[tuple[int, Any, int, Any]]:
    return {(i, a, j, b) for (i, a), (j, b) in itertools.combinations(enumerate(draw), 2)}
