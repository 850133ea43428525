"""Says why the loop of a decoder with attention (torch's scan, by torch.onnx.export) is left, and compiles what is left of it.

python examples/torch_loop.py
"""

from pathlib import Path

import ortscan

MODEL = Path(__file__).with_name("torch_attention_decoder.onnx")


def main() -> None:
    """Explain the loop, then time what is left of it, as onnxruntime runs it and compiled."""
    (loop,) = ortscan.explain(MODEL).loops
    print(f"{loop.where}: {loop.fate}, {loop.nodes_before} nodes in the body before, {loop.nodes_after} after")
    for fired in loop.fired:
        print(f"  did  {fired.rule}: {fired.what}")
    for reason in loop.reasons:
        print(f"  left {reason.code}: {reason.detail}")
    smaller, compiled = ortscan.optimize(MODEL), ortscan.optimize(MODEL, native=True)
    (timed,) = ortscan.bench(MODEL, smaller, compiled, rounds=6, seconds=1).results
    print(f"times as fast: {timed.ratio(1).value:.1f}, compiled {timed.ratio(2).value:.1f}")


if __name__ == "__main__":
    main()
