"""Takes the loop out of a scikit-learn nearest-neighbour model and proves that nothing changed.

    python examples/optimize_a_model.py
"""

from pathlib import Path

import ortscan

MODEL = Path(__file__).with_name("knn_regressor.onnx")


def main() -> None:
    """Optimise the model and compare it with the original."""
    optimized = ortscan.optimize(MODEL)
    print("operators:", ", ".join(sorted({node.op_type for node in optimized.graph.node})))
    print(ortscan.verify(MODEL, optimized).summary())


if __name__ == "__main__":
    main()
