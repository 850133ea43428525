"""Optimise and serve a bidirectional GRU that tf2onnx exported from a Keras model.

python examples/tutorial.py
"""

import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

import ortscan

EXPORTED = Path(__file__).with_name("keras_bidirectional_gru.onnx")


def main() -> None:
    """Explain the loops, write a file without them, write a report, and serve the file."""
    for loop in ortscan.explain(EXPORTED).loops:  # 1. What would become of the loops?
        print(f"{loop.kind}, {loop.nodes_before} nodes a step: {loop.fate}, {loop.is_a}")

    with tempfile.TemporaryDirectory() as folder:
        built, page = Path(folder, "model.onnx"), Path(folder, "report.html")
        model, report = ortscan.optimize(EXPORTED, output=built, report=True)  # 2. Build the file that you deploy
        print(f"built: {len(model.graph.node)} nodes, {ortscan.verify(EXPORTED, built).outcome}")

        page.write_text(report.to_html(), encoding="utf-8")  # 3. One page for people, with each loop drawn
        print(report.summary().splitlines()[0])

        x = np.random.default_rng(0).normal(size=(2, 64, 5)).astype(np.float32)
        server = onnxruntime.InferenceSession(built)  # 4. onnxruntime serves the file, in any language
        (served,) = server.run(None, {"x": x})

        options = onnxruntime.SessionOptions()  # or serve the exporter's file: a session optimises it once, and caches it
        options.add_session_config_entry("ortscan.cache_dir", folder)
        for _ in range(2):
            session = ortscan.InferenceSession(EXPORTED, options)
            (result,) = session.run(None, {"x": x})
            print(f"session: {session.ortscan.source}, largest difference {abs(result - served).max():.0e}")


if __name__ == "__main__":
    main()
