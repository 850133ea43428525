"""What the plugin adds to the time a session takes to start, by the number of loops: ``python -m tests.campaigns benchmarks.plugin_start``.

CPU time of this thread, the least of many sessions in turn: of the model, of the same with plans in it, and of that with the plugin.
"""

import tempfile
import time
from pathlib import Path

import onnx
import onnxruntime as ort

import ortscan
from ortscan.plugin.storing import store_plans
from tests.support.text import model_from_text

__all__ = ["main"]


def main() -> None:
    """Print a line for each number of loops."""
    with tempfile.TemporaryDirectory() as name:
        bare, stored = Path(name) / "bare.onnx", Path(name) / "stored.onnx"
        for loops in (1, 8, 32, 128):
            onnx.save(_chain(loops), bare)
            store_plans(bare, stored)
            best = [float("inf")] * 3
            for _ in range(1920 // max(loops, 16)):
                for place, path in enumerate((bare, stored, stored)):
                    best[place] = min(best[place], _seconds(path, plugin=place == 2))
            times = " ".join(f"{each * 1e3:8.3f}" for each in best)
            print(
                f"{loops:4} loops, ms: {times}; {best[2] / best[0]:.2f} of the model, {best[2] / best[1]:.2f} of the one with plans",
                flush=True,
            )


def _seconds(path: Path, plugin: bool) -> float:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if plugin:
        ortscan.register_plugin(options)
    started = time.thread_time()
    ort.InferenceSession(path, options)
    return time.thread_time() - started


def _chain(loops: int) -> onnx.ModelProto:
    """Return loops one after the other: each reads what the one before has stacked."""
    body = "body = b (float[B,8] s, float[B,8] x) => (float[B,8] s1, float[B,8] y) {a = Mul (s, x) c = Tanh (a) s1 = Add (c, x) y = Identity (s1)}"
    lines = [f"h{i}, x{i + 1} = Scan <num_scan_inputs = 1, {body}> (h, x{i})" for i in range(loops)]
    text = "\n".join(lines)
    return model_from_text(f"g (float[B,8] h, float[T,B,8] x0) => (float[T,B,8] x{loops}) {{ {text} }}", 18)


if __name__ == "__main__":
    main()
