"""Run a Keras model in three sessions: unchanged, with its loop compiled, and optimised first.

The model is an LSTM with a LayerNorm in its cell.

An ortscan session optimises a model at its first start. The next start of the server takes the result from the cache.

    python examples/serve_a_model.py
"""

import tempfile
import time
import timeit
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime

import ortscan

MODEL = Path(__file__).with_name("keras_layernorm_lstm.onnx")


def main() -> None:
    """Create all three sessions, run them, and print the time of a run of each session."""
    x = np.random.default_rng(0).normal(size=(2, 64, 5)).astype(np.float32)
    plain = onnxruntime.InferenceSession(MODEL, one_thread())
    compiled = onnxruntime.InferenceSession(MODEL, ortscan.register(one_thread()))
    with tempfile.TemporaryDirectory() as folder:
        options = one_thread()
        options.add_session_config_entry("ortscan.cache_dir", folder)
        for start in ("first", "second"):
            optimized = ortscan.InferenceSession(MODEL, options)
            print(f"{start} start: {optimized.ortscan.source}")
    (expected,) = plain.run(None, {"x": x})
    for name, session in (("plain", plain), ("its loop compiled", compiled), ("optimised first", optimized)):
        (result,) = session.run(None, {"x": x})
        seconds = min(timeit.repeat(partial(session.run, None, {"x": x}), timer=time.thread_time, number=10, repeat=20)) / 10
        print(f"{name}: {seconds * 1e6:.0f} µs a run, largest difference {abs(result - expected).max():.1g}")


def one_thread() -> onnxruntime.SessionOptions:
    """Return options for sessions with one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return options


if __name__ == "__main__":
    main()
