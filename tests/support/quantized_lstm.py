"""Models around onnxruntime's own LSTM of quantised weights."""

import numpy as np
import onnx

from tests.support.text import parsed

__all__ = ["HIDDEN", "WIDE", "quantized_lstm"]

WIDE, HIDDEN = 4, 8
_TEXT = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
g (float[T,B,4] x) => (float[T,?,B,8] y, float[?,B,8] h, float[?,B,8] c, AFTER) {
    y, h, c = com.microsoft.DynamicQuantizeLSTM <hidden_size = 8, direction = "DIRECTION"> (x, W, R, , , , , , s, z, s, z)
    o = Constant <value_floats = [1.0]> () NODES
}"""


def quantized_lstm(nodes: str = "", after: str = "", direction: str = "forward") -> onnx.ModelProto:
    """A node that gives y, h and c of x, and what else stands beside it."""
    text = _TEXT.replace("NODES", nodes).replace(", AFTER", f", {after}" if after else "").replace("DIRECTION", direction)
    rng, ways = np.random.default_rng(0), 1 + (direction == "bidirectional")
    weights = {
        "W": rng.integers(-50, 50, (ways, WIDE, 4 * HIDDEN)).astype(np.int8),
        "R": rng.integers(-50, 50, (ways, HIDDEN, 4 * HIDDEN)).astype(np.int8),
        "s": np.full(ways, 0.01, np.float32),
        "z": np.zeros(ways, np.int8),
    }
    return parsed(text, weights=weights)
