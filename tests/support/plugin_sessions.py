"""Plain sessions of unmodified models with and without the plugin, and the nodes that the plugin ran."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort

import ortscan
from ortscan.plugin.register import PROVIDER

__all__ = ["SCAN", "Array", "asked_options", "both", "feeds_of_scan", "taken"]

Array = npt.NDArray[Any]

SCAN = """g (float[B,8] h, float[T,B,8] xs) => (float[B,8] hT, float[T,B,8] ys) {
  hT, ys = Scan <num_scan_inputs = 1, body = b (float[B,8] s, float[B,8] x) => (float[B,8] s1, float[B,8] y) {
    a = Mul (s, x) c = Tanh (a) s1 = Add (c, x) y = Identity (s1)
  }> (h, xs)
}"""


def feeds_of_scan(steps: int = 5, batch: int = 2, seed: int = 0) -> dict[str, Array]:
    """Return inputs for SCAN."""
    random = np.random.default_rng(seed)
    return {"h": random.normal(size=(batch, 8)).astype(np.float32), "xs": random.normal(size=(steps, batch, 8)).astype(np.float32)}


def asked_options() -> ort.SessionOptions:
    """Return SessionOptions with the plugin registered."""
    return ortscan.register_plugin(_options())


def both(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> tuple[list[Array], list[Array]]:
    """Return the outputs of the model without and with the plugin."""
    plain, asked = (
        ort.InferenceSession(model.SerializeToString(), each).run(None, feeds) for each in (_options(), asked_options())
    )
    return list(plain), list(asked)


def taken(model: onnx.ModelProto, feeds: Mapping[str, Array], folder: Path) -> int:
    """Return the number of nodes that the plugin ran, from the profile."""
    options = asked_options()
    options.enable_profiling, options.profile_file_prefix = True, str(folder / "profile")
    session = ort.InferenceSession(model.SerializeToString(), options)
    session.run(None, feeds)
    events = json.loads(Path(session.end_profiling()).read_text())
    nodes = [event for event in events if event["cat"] == "Node"]
    return len({node["name"] for node in nodes if node["args"].get("provider") == PROVIDER})


def _options() -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return options
