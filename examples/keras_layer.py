"""Replace the two loops that tf2onnx writes for Keras's ``Bidirectional(GRU(...))`` by one bidirectional GRU node.

python examples/keras_layer.py
"""

from pathlib import Path

import ortscan

MODEL = Path(__file__).with_name("keras_bidirectional_gru.onnx")


def main() -> None:
    """Print what each loop computed and what became of it, and how much faster the model is now."""
    optimized, report = ortscan.optimize(MODEL, report=True)
    for loop in report.loops:
        print(f"{loop.where}: {loop.is_a}, {loop.nodes_before} nodes a step before, {loop.nodes_after} after: {loop.fate}")
    print(ortscan.bench(MODEL, optimized, shapes={"x": [2, 64, 5]}, rounds=6, seconds=1).in_short())


if __name__ == "__main__":
    main()
