"""The sound models that are damaged: small ones of each kind of thing that ortscan reads, and the exported ones of the test data."""

import functools
from pathlib import Path

import numpy as np
import onnx

from tests.support.text import parsed

__all__ = ["bases"]

_FOLDER = Path(__file__).parents[2] / "data" / "models"
_NOW = '<ir_version: 8, opset_import: ["": 18]> g '
_TEXTS = (
    _NOW
    + """(float[T, 3] x, float[2] h) => (float[2] hT, float[T, 2] ys) <float[3, 2] W = {1, 2, 3, 4, 5, 6}, float[2, 2] R = {1, 0, 0, 1}> {
      hT, ys = Scan <num_scan_inputs = 1, body = b (float[2] s, float[3] a) => (float[2] n, float[2] o) {
        p = MatMul (a, W) q = MatMul (s, R) r = Add (p, q) n = Tanh (r) o = Identity (n) }> (h, x) }""",
    _NOW
    + """(float[B, T, 3] x, float[B, 3] h) => (float[B, 3] hT, float[B, T, 3] ys) {
      hT, ys = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], scan_input_directions = [1],
        body = b (float[B, 3] s, float[B, 3] a) => (float[B, 3] n, float[B, 3] o) {
        z = Sigmoid (a) m = Mul (z, s) n = Add (m, a) o = Neg (n) }> (h, x) }""",
    """<ir_version: 4, opset_import: ["": 8]> g (float[B, T, 3] x, float[B, 3] h, int64[B] lens) => (float[B, 3] hT, float[B, T, 3] ys) {
      hT, ys = Scan <num_scan_inputs = 1, directions = [0], body = b (float[3] s, float[3] a) => (float[3] n, float[3] o) {
        t = Tanh (a) n = Add (t, s) o = Mul (n, t) }> (lens, h, x) }""",
    """<ir_version: 4, opset_import: ["": 8]> g (float[B, T, 2, 2] x, float[B, T, 2, 2] y) => (float[B, T, 4] z) {
      z = Scan <num_scan_inputs = 2, body = b (float[2, 2] a, float[2, 2] c) => (float[4] o) {
        m = MatMul (a, c) k = Constant <value = int64[1] {4}> () o = Reshape (m, k) }> ("", x, y) }""",
    _NOW
    + """(float[3] x) => (float[3] y, float[N, 3] all) <int64 n = {4}, bool go = {1}> {
      y, all = Loop <body = b (int64 i, bool c, float[3] s) => (bool k, float[3] t, float[3] o) {
        k = Identity (c) u = Cast <to = 1> (i) t = Add (s, u) o = Exp (s) }> (n, go, x) }""",
    _NOW
    + """(float[T, 3] x, int64 n) => (float[3] y) {
      go = Constant <value = bool {1}> () z = Constant <value = float[3] {0, 0, 0}> ()
      y = Loop <body = b (int64 i, bool c, float[3] s) => (bool k, float[3] t) {
        r = Gather <axis = 0> (x, i) t = Add (s, r) m = ReduceMax <keepdims = 0> (t) h = Constant <value = float {100.0}> ()
        k = Less (m, h) }> (n, go, z) }""",
    _NOW
    + """(float[T, 3] x) => (float[N, 3] y) <int64 n = {3}> {
      e = SequenceEmpty <dtype = 1> ()
      s = Loop <body = b (int64 i, bool c, seq(float) q) => (bool k, seq(float) r) {
        k = Identity (c) v = Gather (x, i) w = Relu (v) r = SequenceInsert (q, w) }> (n, "", e)
      y = ConcatFromSequence <axis = 0, new_axis = 1> (s) }""",
    _NOW
    + """(float[T, 3] x, bool c) => (float[A, 3] y) {
      y = If <then_branch = p () => (float[A, 3] u) { u = Scan <num_scan_inputs = 1, body = b (float[3] a) => (float[3] o) {
        o = Cos (a) }> (x) }, else_branch = q () => (float[A, 3] v) { v = Neg (x) }> (c) }""",
    _NOW
    + """(float[T, B, 3] x) => (float[T, D, B, 2] y, float[D, B, 2] h) <float[1, 6, 3] W, float[1, 6, 2] R> {
      y, h = GRU <hidden_size = 2, linear_before_reset = 1> (x, W, R) }""",
    _NOW
    + """(float[T, B, 3] x, int32[B] n) => (float[T, D, B, 2] y, float[D, B, 2] h, float[D, B, 2] c) <float[2, 8, 3] W, float[2, 8, 2] R> {
      y, h, c = LSTM <hidden_size = 2, direction = "bidirectional"> (x, W, R, "", n) }""",
    """<ir_version: 4, opset_import: ["": 9]> g (float[T, B, 3] x) => (float[T, D, B, 2] y) <float[1, 2, 3] W, float[1, 2, 2] R> {
      y = RNN <hidden_size = 2, activations = ["Relu"], clip = 3.0> (x, W, R) }""",
    """<ir_version: 8, opset_import: ["": 18, "local": 1]> g (float[T, 3] x) => (float[T, 3] y) { m = local.f <alpha = 2.0> (x) y = Neg (m) }
    <domain: "local", opset_import: ["": 18]> f <alpha> (a) => (b) {
      b = Scan <num_scan_inputs = 1, body = q (v) => (w) { l = Elu <alpha = 1.5> (v) w = Identity (l) }> (a) }""",
    _NOW
    + """(float[T, 2, 3] x) => (float[T, 2, 3] y) {
      y = Scan <num_scan_inputs = 1, body = b (float[2, 3] a) => (float[2, 3] o) {
        o = Scan <num_scan_inputs = 1, body = c (float[3] e) => (float[3] f) { g = Softmax <axis = 0> (e) f = Add (g, e) }> (a) }> (x) }""",
    _NOW
    + """(float[T, 4] x) => (float[T, 2] v, int64[T, 2] i, float[T, 3] p) {
      v, i, p = Scan <num_scan_inputs = 1, body = b (float[4] a) => (float[2] u, int64[2] j, float[3] r)
        <int64[1] o = {1}, int64[1] e = {3}, int64[2] z = {0, 1}> {
        k = Constant <value = int64[1] {2}> () u, j = TopK <axis = 0> (a, k) f = Slice (a, o, e)  r = Pad (f, z) }> (x) }""",
    _NOW
    + """(int64[T, 2] x, int64 h) => (int64 s, int64[T] y) {
      s, y = Scan <num_scan_inputs = 1, body = b (int64 n, int64[2] a) => (int64 m, int64 o) {
        r = ReduceSum <keepdims = 0> (a) m = Add (n, r) o = Identity (m) }> (h, x) }""",
    _NOW
    + """(float[T, B, 2, 8, 8] x) => (float[T, B, 3, 8, 8] y) <float[3, 2, 3, 3] W> {
      y = Scan <num_scan_inputs = 1, body = b (float[B, 2, 8, 8] a) => (float[B, 3, 8, 8] o) {
        c = Conv <pads = [1, 1, 1, 1], kernel_shape = [3, 3]> (a, W) o = LeakyRelu <alpha = 0.1> (c) }> (x) }""",
    """<ir_version: 10, opset_import: ["": 21]> g (float[T, 4] x, bool[T] keep) => (float[T, 4] y) <float[4] s = {0, 0, 0, 0}> {
      l, y = Scan <num_scan_inputs = 2, body = b (float[4] h, float[4] a, bool m) => (float[4] n, float[4] o)
        <float sc = {0.1}, uint8 zp = {3}> {
        t = Add (h, a) n = Where (m, t, h) q = QuantizeLinear (n, sc, zp) d = DequantizeLinear (q, sc, zp) o = Identity (d) }> (s, x, keep) }""",
)


@functools.cache
def bases() -> tuple[bytes, ...]:
    """Return the models, serialised; weights that the texts leave open are small numbers."""
    return tuple(_parsed(text) for text in _TEXTS) + tuple(path.read_bytes() for path in sorted(_FOLDER.glob("*.onnx")))


def _parsed(text: str) -> bytes:
    model = parsed(text)
    for info in model.graph.value_info:
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        numbers = np.resize(np.linspace(-0.5, 0.5, 17, dtype=np.float32), shape)
        model.graph.initializer.append(onnx.numpy_helper.from_array(numbers, info.name))
    del model.graph.value_info[:]
    return bytes(model.SerializeToString())
