"""Says what became of each loop of a model, and why one is still there.

python examples/why_is_a_loop_left.py
"""

from pathlib import Path

import ortscan

MODEL = Path(__file__).with_name("lstm_loop.onnx")


def main() -> None:
    """Explain the model's loops."""
    for loop in ortscan.explain(MODEL).loops:
        print(f"{loop.where}: {loop.fate}, {loop.nodes_before} nodes in the body before, {loop.nodes_after} after")
        for fired in loop.fired:
            print(f"  did  {fired.rule}: {fired.what}")
        for reason in loop.reasons:
            print(f"  left {reason.code}: {reason.detail}")


if __name__ == "__main__":
    main()
