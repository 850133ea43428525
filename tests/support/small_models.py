"""Small models for sessions and the command line: one with a loop that goes, one with a loop that stays, one without a loop."""

import numpy as np
import onnx

__all__ = ["MAP", "PLAIN", "RECURRENCE", "X", "expected_of_map", "parsed", "with_weights"]

MAP = """
<ir_version: 8, opset_import: ["": 18]>
g (float[T, 4] x) => (float[T, 4] y) {
  y = Scan <num_scan_inputs = 1, body = b (float[4] xi) => (float[4] yi) { t = Tanh(xi) yi = Mul(t, t) }> (x)
}
"""
RECURRENCE = """
<ir_version: 8, opset_import: ["": 18]>
g (float[T, 4] x, float[4] h) => (float[4] last, float[T, 4] y) {
  last, y = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] xi) => (float[4] n, float[4] yi) {
    p = Mul(s, s) q = Add(p, xi) n = Atan(q) yi = Identity(n)
  }> (h, x)
}
"""
PLAIN = """
<ir_version: 8, opset_import: ["": 18]>
g (float[T, 4] x) => (float[T, 4] y) { y = Relu(x) }
"""
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def expected_of_map(x: np.ndarray = X) -> np.ndarray:
    return np.tanh(x) ** 2


def with_weights(width: int = 64) -> onnx.ModelProto:
    """A step that multiplies by a matrix too large to be read by accident."""
    model = parsed(f"""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[T, {width}] x) => (float[T, {width}] y) {{
          y = Scan <num_scan_inputs = 1, body = b (float[{width}] xi) => (float[{width}] yi) {{
            m = MatMul(xi, W) yi = Tanh(m)
          }}> (x)
        }}
    """)
    weights = np.random.default_rng(0).standard_normal((width, width)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "W"))
    return model
