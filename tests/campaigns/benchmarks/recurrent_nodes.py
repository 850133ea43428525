"""onnxruntime's recurrent nodes beside the library's: python -m tests.campaigns benchmarks.recurrent_nodes [kinds [directions [hidden sizes]]]

One thread, its own time, in turn; the time is the best round's, the ratio the median of the rounds'. Lists are separated by commas.
"""

import itertools
import sys
from functools import partial
from statistics import median

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import ortscan
from rewrites.native import native_cell
from tests.campaigns.benchmarks.timing import mean_seconds, session_of

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_ROUNDS, _SECONDS, _MOST_SECONDS = 5, 0.01, 0.3
_ROWS, _STEPS = (1, 8, 32), (10, 100, 1000)


def model_of(kind: str, direction: str, hidden: int) -> onnx.ModelProto:
    """A node as torch writes it: with biases, the reset after the product, as many features as hidden ones, free sizes."""
    rng, ways, rows = np.random.default_rng(hidden), 2 if direction == "bidirectional" else 1, _GATES[kind] * hidden
    shapes = {"W": (ways, rows, hidden), "R": (ways, rows, hidden), "B": (ways, 2 * rows)}
    weights = [
        numpy_helper.from_array((rng.uniform(-1, 1, shape) / hidden**0.5).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    node = helper.make_node(kind, ["X", "W", "R", "B"], ["Y", "Y_h"], hidden_size=hidden, direction=direction, **more)
    given = [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["T", "N", hidden])]
    results = [
        helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["T", ways, "N", hidden]),
        helper.make_tensor_value_info("Y_h", TensorProto.FLOAT, [ways, "N", hidden]),
    ]
    graph = helper.make_graph([node], "g", given, results, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def main() -> None:
    kinds, directions, sizes = (sys.argv[i].split(",") if len(sys.argv) > i else () for i in (1, 2, 3))
    native_cell.MOST_HIDDEN_FASTER.update(dict.fromkeys(_GATES, 1 << 16))  # what the rule leaves to onnxruntime is measured too
    print("| node | hidden | rows | " + " | ".join(f"{steps} steps: onnxruntime, library (us), ratio" for steps in _STEPS) + " |")
    print("|---|---|---|" + "---|" * len(_STEPS))
    for kind, direction, hidden in itertools.product(
        kinds or _GATES, directions or ("forward", "bidirectional"), map(int, sizes or ("16", "64", "128", "256", "512"))
    ):
        model = model_of(kind, direction, hidden)
        sessions = [session_of(model), session_of(ortscan.optimize(model, native=True, verify=False), library=True)]
        for rows in _ROWS:
            found = []
            for steps in _STEPS:
                x = np.random.default_rng(steps).standard_normal((steps, rows, hidden)).astype(np.float32)
                first = [mean_seconds(partial(session.run, None, {"X": x}), _SECONDS) for session in sessions]
                if sum(first) * _SECONDS / _MOST_SECONDS > _SECONDS:
                    rounds = [first]
                else:
                    rounds = [
                        [mean_seconds(partial(session.run, None, {"X": x}), _SECONDS) for session in sessions]
                        for _ in range(_ROUNDS)
                    ]
                best = [1e6 * min(column) for column in zip(*rounds, strict=True)]
                found.append(f"{best[0]:.0f}, {best[1]:.0f}, {median(one[1] / one[0] for one in rounds):.2f}")
            print(f"| {kind}, {direction} | {hidden} | {rows} | {' | '.join(found)} |", flush=True)


if __name__ == "__main__":
    main()
