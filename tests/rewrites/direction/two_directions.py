"""Models of two recurrent nodes, or two Scans, of opposite directions on one sequence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.rewrites.recurrences.written_cells import HIDDEN, Written

__all__ = ["SIZE", "STEPS", "TwoNodes", "two_scans"]

STEPS, ROWS, WIDTH, SIZE = 5, 2, 3, 4
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_PLACES = ("B", "lens", "initial_h", "initial_c", "P")


@dataclass(frozen=True)
class TwoNodes:
    """`extra` and `settings`: optional inputs and attributes of the forward node `f_…` and the backward node `b_…`.

    `after`: text of nodes on `f_Y`, `f_H`, `f_C` and those of `b`; `results`: outputs of the model with their shapes.
    """

    kind: str = "LSTM"
    after: str = ""
    results: Mapping[str, Sequence[int | str]] = field(default_factory=dict)
    before: str = ""
    extra: tuple[frozenset[str], frozenset[str]] = (frozenset({"B"}), frozenset({"B"}))
    settings: tuple[Mapping[str, Any], Mapping[str, Any]] = field(default_factory=lambda: ({}, {}))
    sources: tuple[str, str] = ("xs", "xs")
    lens: tuple[str, str] = ("lens", "lens")
    fed: frozenset[str] = frozenset()
    rows: int | str = ROWS
    steps: int | str = STEPS
    opset: int = 18
    size: int = SIZE

    def model(self) -> onnx.ModelProto:
        """`fed`: the weights that are inputs of the model."""
        weights = self.weights()
        nodes = [self._node(way) for way in (0, 1)]
        text = f'<ir_version: 8, opset_import: ["": {self.opset}]> g () => () {{ {{}} }}'
        around = [onnx.parser.parse_model(text.replace("{}", part)).graph.node for part in (self.before, self.after)]
        given = {"xs": [self.steps, self.rows, WIDTH]}
        if any("lens" in extra for extra in self.extra):
            given |= {name: [self.rows] for name in dict.fromkeys(self.lens)}
        for way in (0, 1):
            given |= {
                f"{'fb'[way]}_{name}": [1, self.rows, self.size] for name in ("initial_h", "initial_c") if name in self.extra[way]
            }
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT32 if name in self.lens else TensorProto.FLOAT, shape)
            for name, shape in given.items()
        ]
        inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, weights[name].shape) for name in sorted(self.fed)]
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in self.results.items()]
        initializers = [numpy_helper.from_array(array, name) for name, array in weights.items() if name not in self.fed]
        initializers.append(numpy_helper.from_array(np.array([0]), "zero"))
        initializers.append(numpy_helper.from_array(np.array([1]), "one"))
        graph = helper.make_graph([*around[0], *nodes, *around[1]], "g", inputs, results, initializers)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", self.opset)])

    def _node(self, way: int) -> onnx.NodeProto:
        side, last = "fb"[way], 8 if self.kind == "LSTM" else 6
        operands = [self.sources[way], f"{side}_W", f"{side}_R"]
        for name in _PLACES:
            operands.append((self.lens[way] if name == "lens" else f"{side}_{name}") if name in self.extra[way] else "")
        outputs = [f"{side}_{name}" for name in ("Y", "H", "C")[: 3 if self.kind == "LSTM" else 2]]
        given = {"hidden_size": self.size, "direction": ("forward", "reverse")[way]} | dict(self.settings[way])
        return helper.make_node(self.kind, operands[:last], outputs, name=f"{side}_node", **given)

    def weights(self) -> dict[str, np.ndarray]:
        rng, count = np.random.default_rng(3), _GATES[self.kind] * self.size
        shapes = {"W": (1, count, WIDTH), "R": (1, count, self.size), "B": (1, 2 * count), "P": (1, 3 * self.size)}
        made = {}
        for way in (0, 1):
            chosen = {"W", "R"} | self.extra[way]
            made |= {f"{'fb'[way]}_{name}": rng.standard_normal(shape) / 2 for name, shape in shapes.items() if name in chosen}
        return {name: array.astype(np.float32) for name, array in made.items()}

    def feeds(self, *, steps: int = STEPS, rows: int = ROWS) -> dict[str, np.ndarray]:
        rng, weights = np.random.default_rng(steps + rows), self.weights()
        sizes = {"T": steps, "N": rows}
        feeds = {}
        for info in self.model().graph.input:
            shape = [sizes.get(dim.dim_param, dim.dim_value) for dim in info.type.tensor_type.shape.dim]
            if info.name in self.lens:
                feeds[info.name] = rng.integers(0, steps + 1, shape).astype(np.int32)
            else:
                feeds[info.name] = weights.get(info.name, rng.standard_normal(shape).astype(np.float32))
        return feeds


def two_scans(
    forward: Written, backward: Written, spelling: str, after: str, *, rows: int | str, steps: int | str, zeros: bool
) -> onnx.ModelProto:
    """Two Scans, the second between two reversals written as `spelling` says, of `{x}` as `{y}`, with names ending in `{n}`.

    `after` makes `out` of `f_ys` and `zs`. `zeros`: initial states are constants of 0, not inputs.
    """
    parts = [cell.model(rows=rows, steps=steps).graph for cell in (forward, backward)]
    for graph, prefix in zip(parts, ("f_", "b_"), strict=True):
        _rename(graph, prefix)
    turn = spelling.format(x="xs", y="b_xs", n="in"), spelling.format(x="b_ys", y="zs", n="out")
    text = '<ir_version: 8, opset_import: ["": 18]> g () => () { {} }'
    enter, leave = (onnx.parser.parse_model(text.replace("{}", each)).graph for each in (turn[0], f"{turn[1]} {after}"))
    nodes = [*parts[0].node, *enter.node, *parts[1].node, *leave.node]
    for node in parts[0].node:
        node.input[:] = ["xs" if name == "f_xs" else name for name in node.input]
    states = [info for part in parts for info in part.input if not info.name.endswith("_xs")]
    finals = [info for part in parts for info in part.output if not info.name.endswith("_ys")]
    weights = [each for part in parts for each in part.initializer]
    given = [helper.make_tensor_value_info("xs", TensorProto.FLOAT, [steps, rows, 3])]
    if zeros:
        shape = [dim.dim_value for dim in states[0].type.tensor_type.shape.dim]
        weights += [numpy_helper.from_array(np.zeros(shape, np.float32), info.name) for info in states]
    else:
        given += states
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, ["o0", "o1", "o2"])
    constants = {"zero": [0], "one": [1], "last": [-1], "far": [np.iinfo(np.int64).min]}
    weights += [numpy_helper.from_array(np.array(array), name) for name, array in constants.items()]
    weights += [numpy_helper.from_array(np.array(number), name) for name, number in {"n0": 0, "n1": 1, "m1": -1}.items()]
    graph = helper.make_graph(nodes, "g", given, [out, *finals], weights)
    assert HIDDEN == 4
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 18)])


def _rename(graph: onnx.GraphProto, prefix: str) -> None:
    """Put `prefix` before every name, those in bodies included."""
    for info in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        info.name = prefix + info.name
    for node in graph.node:
        node.input[:] = [prefix + name if name else "" for name in node.input]
        node.output[:] = [prefix + name for name in node.output]
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                _rename(attribute.g, prefix)
