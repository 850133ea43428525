"""Quantized recurrences: Scans of recurrent cells with quantized products, and models with a DynamicQuantizeLSTM."""

import numpy as np
import onnx

from tests.support.text import model_from_text, parsed

__all__ = ["HIDDEN", "WAYS", "WEIGHTS_ALONE", "WIDE", "quantized_lstm", "quantized_scan"]


_CELLS = {
    "LSTM": """p = Add (xw, hr) q = Add (p, b) i, o, f, g = Split <axis = -1, num_outputs = 4> (q) si = Sigmoid (i) so = Sigmoid (o) sf = Sigmoid (f)
        tg = Tanh (g) fc = Mul (sf, c) ig = Mul (si, tg) c1 = Add (fc, ig) tc = Tanh (c1) h1 = Mul (so, tc)""",
    "GRU": """xb = Add (xw, b) xz, xr, xh = Split <axis = -1, num_outputs = 3> (xb) hz, hs, hh = Split <axis = -1, num_outputs = 3> (hr)
        z0 = Add (xz, hz) z = Sigmoid (z0) r0 = Add (xr, hs) r = Sigmoid (r0) rh = Mul (r, hh) n0 = Add (xh, rh) n = Tanh (n0)
        d = Sub (h, n) zd = Mul (z, d) h1 = Add (n, zd) c1 = Identity (c)""",
    "RNN": "p = Add (xw, hr) q = Add (p, b) h1 = Tanh (q) c1 = Identity (c)",
}
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_DYNAMIC = """{0}_q, {0}_s, {0}_z = DynamicQuantizeLinear ({0}) {0}_i = MatMulInteger ({0}_q, {1}, {0}_z, {1}_z) {0}_f = Cast <to = 1> ({0}_i)
        {0}_t = Mul ({0}_s, {1}_s) {2} = Mul ({0}_f, {0}_t) """
_WEIGHTS = "{1}_d = DequantizeLinear ({1}, {1}_s, {1}_z) {2} = MatMul ({0}, {1}_d) "
_FLOATS = "{0}_q = QuantizeLinear ({0}, {0}_s, {0}_z) {0}_d = DequantizeLinear ({0}_q, {0}_s, {0}_z) " + _WEIGHTS.replace(
    "({0}", "({0}_d"
)
_END = "{2}_q = QuantizeLinear ({2}_f, {2}_s, {2}_z) {2} = DequantizeLinear ({2}_q, {2}_s, {2}_z) "
WAYS = {"dynamic": _DYNAMIC, "static": _FLOATS, "static to the end": _FLOATS.replace("{2} =", "{2}_f =") + _END}
WEIGHTS_ALONE = "weights alone"


def quantized_scan(cell: str, way: str, steps: int | str = 20, rows: int = 1, wide: int = 16, hidden: int = 16) -> onnx.ModelProto:
    """Return a Scan of `cell` whose two products are quantized in one of `WAYS`. It outputs all states `y` and the last, `l`."""
    product = (WAYS | {WEIGHTS_ALONE: _WEIGHTS})[way]
    products = product.format("x", "W", "xw") + product.format("h", "R", "hr")
    states, size = f"float[{rows},{hidden}]", _GATES[cell] * hidden
    model = model_from_text(
        f"""g (float[{steps},{rows},{wide}] xs, {states} h0, {states} c0) => (float[{steps},{rows},{hidden}] y, {states} l) {{
        l, k, y = Scan <num_scan_inputs = 1, body = body ({states} h, {states} c, float[{rows},{wide}] x) => ({states} h1, {states} c1, {states} e) {{
        {products} {_CELLS[cell]} e = Identity (h1) }}> (h0, c0, xs) }}""",
        18,
        check=False,
    )
    rng = np.random.default_rng(0)
    constants = {
        "W": rng.integers(-60, 60, (wide, size)).astype(np.int8),
        "R": rng.integers(-60, 60, (hidden, size)).astype(np.int8),
        "b": rng.normal(0, 0.1, size).astype(np.float32),
        **{f"{one}_s": np.float32(0.004) for one in "WR"},
        **{f"{one}_z": np.int8(0) for one in "WR"},
    }
    if way != "dynamic":
        constants |= {f"{one}_s": np.float32(scale) for one, scale in {"x": 0.03, "h": 0.01, "xw": 0.1, "hr": 0.1}.items()}
        constants |= {f"{one}_z": np.uint8(128) for one in ("x", "h", "xw", "hr")}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items())
    return model


WIDE, HIDDEN = 4, 8
_TEXT = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
g (float[T,B,4] x) => (float[T,?,B,8] y, float[?,B,8] h, float[?,B,8] c, AFTER) {
    y, h, c = com.microsoft.DynamicQuantizeLSTM <hidden_size = 8, direction = "DIRECTION"> (x, W, R, , , , , , s, z, s, z)
    o = Constant <value_floats = [1.0]> () NODES
}"""


def quantized_lstm(nodes: str = "", after: str = "", direction: str = "forward") -> onnx.ModelProto:
    """Return a model with a DynamicQuantizeLSTM that computes y, h and c from x, and with other ``nodes``."""
    text = _TEXT.replace("NODES", nodes).replace(", AFTER", f", {after}" if after else "").replace("DIRECTION", direction)
    rng, ways = np.random.default_rng(0), 1 + (direction == "bidirectional")
    weights = {
        "W": rng.integers(-50, 50, (ways, WIDE, 4 * HIDDEN)).astype(np.int8),
        "R": rng.integers(-50, 50, (ways, HIDDEN, 4 * HIDDEN)).astype(np.int8),
        "s": np.full(ways, 0.01, np.float32),
        "z": np.zeros(ways, np.int8),
    }
    return parsed(text, weights=weights)
