"""Runs a model in a session that optimises it first, and again from the cache, as a server's next start does.

python examples/serve_a_model.py
"""

import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

import ortscan

MODEL = Path(__file__).with_name("mlp_per_step.onnx")


def main() -> None:
    """Start twice, and run."""
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("ortscan.cache_dir", folder)
        for start in ("first", "second"):
            session = ortscan.InferenceSession(MODEL, options)
            print(f"{start} start: {session.ortscan.source}")
        (given,) = session.get_inputs()
        shape = [size if isinstance(size, int) else 8 for size in given.shape]
        (result,) = session.run(None, {given.name: np.ones(shape, np.float32)})
        print("loops left:", len(session.ortscan.report.loops_left), "- result:", result.shape)


if __name__ == "__main__":
    main()
