"""Recognise an LSTM that was written by hand for ``jax.lax.scan`` and exported with jax2onnx.

python examples/jax_scan.py
"""

from pathlib import Path

import ortscan

MODEL = Path(__file__).with_name("lstm_loop.onnx")


def main() -> None:
    """Print the node that replaces the loop, and the speed-up."""
    optimized, report = ortscan.optimize(MODEL, report=True)
    (loop,) = report.loops
    print(f"{loop.where}: {loop.is_a}; the model is {', '.join(node.op_type for node in optimized.graph.node)} now")
    print(ortscan.bench(MODEL, optimized, rounds=6, seconds=1).in_short())


if __name__ == "__main__":
    main()
