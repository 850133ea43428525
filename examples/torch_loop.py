"""Explain why the loop of a decoder with attention remains, and compile this loop.

The model uses ``scan`` of torch, and was exported with ``torch.onnx.export``.

python examples/torch_loop.py
"""

from pathlib import Path

import ortscan

MODEL = Path(__file__).with_name("torch_attention_decoder.onnx")


def main() -> None:
    """Explain the loop. Then time the optimised model with the loop in onnxruntime, and with the loop compiled."""
    (loop,) = ortscan.explain(MODEL).loops
    print(f"{loop.where}: {loop.fate}, {loop.nodes_before} nodes in the body before, {loop.nodes_after} after")
    for fired in loop.fired:
        print(f"  did  {fired.rule}: {fired.what}")
    for reason in loop.reasons:
        print(f"  left {reason.code}: {reason.detail}")
    smaller, compiled = ortscan.optimize(MODEL), ortscan.optimize(MODEL, native=True)
    (result,) = ortscan.bench(MODEL, smaller, compiled, rounds=6, seconds=1).results
    print(f"times as fast: {result.ratio(1).value:.1f}, compiled {result.ratio(2).value:.1f}")


if __name__ == "__main__":
    main()
