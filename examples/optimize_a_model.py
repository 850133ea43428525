"""Takes the loop out of a model that applies an MLP to each step and proves that nothing changed.

python examples/optimize_a_model.py
"""

from pathlib import Path

import ortscan

MODEL = Path(__file__).with_name("mlp_per_step.onnx")


def main() -> None:
    """Optimise the model and compare it with the original."""
    optimized = ortscan.optimize(MODEL)
    print("operators:", ", ".join(sorted({node.op_type for node in optimized.graph.node})))
    print(ortscan.verify(MODEL, optimized).summary())


if __name__ == "__main__":
    main()
