"""Remove the loop from a model that applies an MLP to each step, and check that the results are equal.

The model was written in JAX and exported with jax2onnx.

python examples/optimize_a_model.py
"""

from pathlib import Path

import ortscan

MODEL = Path(__file__).with_name("mlp_per_step.onnx")


def main() -> None:
    """Optimise the model, compare it with the original, and time both."""
    optimized = ortscan.optimize(MODEL)
    print("operators:", ", ".join(sorted({node.op_type for node in optimized.graph.node})))
    print(ortscan.verify(MODEL, optimized).summary())
    print(ortscan.bench(MODEL, optimized, rounds=6, seconds=1).in_short())


if __name__ == "__main__":
    main()
