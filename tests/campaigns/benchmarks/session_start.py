"""How long a session takes to start, by itself and with ortscan: the first time, and from the cache.

`python -m tests.campaigns benchmarks.session_start`
"""

import os
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

import ortscan
from tests.campaigns.benchmarks.timing import best_of
from tests.support.text import parsed

__all__ = ["model_of_20_mb"]

_RUNS = 25


def model_of_20_mb(layers: int = 5, width: int = 1024) -> onnx.ModelProto:
    """A step of matrix products over time."""
    steps = "\n".join(f"h{i + 1} = MatMul (h{i}, W{i}) " for i in range(layers))
    text = f"""g (float[T, {width}] x) => (float[T, {width}] y) {{
        y = Scan <num_scan_inputs = 1, body = b (float[{width}] h0) => (float[{width}] o) {{ {steps} o = Tanh (h{layers}) }}> (x) }}"""
    rng = np.random.default_rng(0)
    return parsed(text, weights={f"W{i}": rng.standard_normal((width, width), np.float32) / 32 for i in range(layers)})


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ORTSCAN_CACHE_DIR"] = f"{folder}/cache"
        original, optimised = Path(folder, "original.onnx"), Path(folder, "optimised.onnx")
        onnx.save(model_of_20_mb(), original)
        content = original.read_bytes()
        ortscan.optimize(original, output=optimised)
        started = time.perf_counter()
        assert ortscan.InferenceSession(original).ortscan.source == "optimized"
        first = (time.perf_counter() - started) * 1e3
        assert ortscan.InferenceSession(original).ortscan.source == "cached"
        data = optimised.read_bytes()
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        works = {
            "onnxruntime, optimised file": lambda: ort.InferenceSession(optimised, options),
            "ortscan, path, from the cache": lambda: ortscan.InferenceSession(original, options),
            "onnxruntime, optimised bytes": lambda: ort.InferenceSession(data, options),
            "ortscan, bytes, from the cache": lambda: ortscan.InferenceSession(content, options),
        }
        best = best_of(list(works.values()), _RUNS, clock=time.perf_counter)
        times = {name: seconds * 1e3 for name, seconds in zip(works, best, strict=True)}
        own = times["onnxruntime, optimised file"]
        print(f"a model of {len(content) / 1e6:.0f} MB\n\n| start | ms | to onnxruntime's own of the file |\n|---|---|---|")
        print(f"| ortscan, first time | {first:.1f} | {first / own:.2f} |")
        for name, value in times.items():
            print(f"| {name} | {value:.1f} | {value / own:.2f} |")


if __name__ == "__main__":
    main()
