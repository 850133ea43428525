"""Small models for sessions and the command line: with a removable loop, with one that remains, without loops, and unrolled."""

import numpy as np
import onnx

from tests.support.text import parsed

__all__ = ["ENDLESS", "MAP", "PLAIN", "RECURRENCE", "SCHEDULE", "UNTOUCHED", "WRITTEN_OUT", "X", "expected_of_map", "with_weights"]

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
SCHEDULE = """
<ir_version: 8, opset_import: ["": 18]>
g (float[T, 4] x, float[4] h) => (float[4] last) <float[4] k0 = {1, 2, 3, 4}> {
  last, k = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] k, float[4] xi) => (float[4] n, float[4] k1) {
    k1 = Atan(k) p = Mul(s, k) q = Add(p, xi) n = Atan(q)
  }> (h, k0, x)
}
"""
PLAIN = """
<ir_version: 8, opset_import: ["": 18]>
g (float[T, 4] x) => (float[T, 4] y) { y = Relu(x) }
"""
UNTOUCHED = """
<ir_version: 8, opset_import: ["": 18]>
g (float[T, 4] Scanned) => (float[T, 4] y) { y = Relu(Scanned) }
"""
WRITTEN_OUT = (
    """
<ir_version: 8, opset_import: ["": 18]>
g (float[8, 4] x, float[4] h0) => (float[4] h8) <int64 i0 = {0}, int64 i1 = {1}, int64 i2 = {2}, int64 i3 = {3}, int64 i4 = {4},
  int64 i5 = {5}, int64 i6 = {6}, int64 i7 = {7}> {
"""
    + "".join(f"x{t} = Gather (x, i{t}) p{t} = Mul (h{t}, h{t}) q{t} = Add (p{t}, x{t}) h{t + 1} = Tanh (q{t})\n" for t in range(8))
    + "}"
)
ENDLESS = """
<ir_version: 8, opset_import: ["": 18]>
g (float[T] x) => (float[T] y) <float two = {2}, float zero = {0}, bool yes = {1}> {
  y = Scan <num_scan_inputs = 1, body = b (float xi) => (float yi) {
    r = Loop <body = q (int64 i, bool c, float s) => (bool go, float n) {
      k = Abs (xi) m = Add (k, two) n = Div (s, m) go = GreaterOrEqual (n, zero) }> ( , yes, two)
    yi = Neg (r) }> (x)
}
"""
"""A model whose inner loop never ends."""
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def expected_of_map() -> np.ndarray:
    return np.tanh(X) ** 2


def with_weights(width: int = 64) -> onnx.ModelProto:
    """Return a step that multiplies by a matrix so large that reading it would be noticed."""
    text = f"""g (float[T, {width}] x) => (float[T, {width}] y) {{
        y = Scan <num_scan_inputs = 1, body = b (float[{width}] xi) => (float[{width}] yi) {{ m = MatMul(xi, W) yi = Tanh(m) }}> (x) }}"""
    return parsed(text, ir_version=8, weights={"W": np.random.default_rng(0).standard_normal((width, width)).astype(np.float32)})
