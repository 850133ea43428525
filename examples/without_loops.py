"""Prepare Keras's SimpleRNN for a provider that runs no loops: fix the number of steps, and unroll the loop.

python examples/without_loops.py
"""

from collections import Counter
from pathlib import Path

import onnx

import ortscan

MODEL = Path(__file__).with_name("keras_simple_rnn.onnx")
STEPS = {"x": [1, 3, 5]}


def main() -> None:
    """Print the operators before and after, and where the steps of the loop run."""
    print("before:", counted(onnx.load(MODEL)))
    for shapes in (None, STEPS):
        for loop in ortscan.explain(MODEL, target="coreml", fix_shapes=shapes).loops:
            print(f"with x {shapes['x'] if shapes else 'of any length'}, {loop.where} runs as: {loop.runs}")
    unrolled = ortscan.optimize(MODEL, target="coreml", fix_shapes=STEPS)
    print("after:", counted(unrolled))
    print(ortscan.verify(MODEL, unrolled, shapes=STEPS).summary())
    print("on the CPU:", ortscan.bench(MODEL, unrolled, shapes=STEPS, rounds=6, seconds=1).in_short())


def counted(model: onnx.ModelProto) -> str:
    """Return the operators of the main graph with their numbers of nodes, such as "2 Add, 1 MatMul"."""
    return ", ".join(
        f"{count} {operator}" for operator, count in sorted(Counter(node.op_type for node in model.graph.node).items())
    )


if __name__ == "__main__":
    main()
