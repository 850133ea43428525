"""Decoders with one layer of attention, whose caches grow by a Concat in each step."""

import numpy as np
import onnx
from onnx import numpy_helper

from tests.support.text import parsed

__all__ = ["beam_decoder", "decoder", "decoder_feeds"]

_BODY = """
    q0 = MatMul (x, wq)  q1 = Reshape (q0, split)  q = Transpose <perm = [0, 2, 1, 3]> (q1)
    r0 = MatMul (x, wk)  r1 = Reshape (r0, split)  r = Transpose <perm = [0, 2, 1, 3]> (r1)
    s0 = MatMul (x, wv)  s1 = Reshape (s0, split)  s = Transpose <perm = [0, 2, 1, 3]> (s1)
    k1 = Concat <axis = 2> (k, r)  v1 = Concat <axis = 2> (v, s)
    kt = Transpose <perm = [0, 1, 3, 2]> (k1)  a0 = MatMul (q, kt)  a1 = Mul (a0, scale)  p = Softmax <axis = -1> (a1)
    o0 = MatMul (p, v1)  o1 = Transpose <perm = [0, 2, 1, 3]> (o0)  o2 = Reshape (o1, join)
    o = MatMul (o2, wo)  z = Add (o, x)  x1 = Tanh (z)  y = Identity (x1)
"""


def decoder(batch: int, heads: int = 2, size: int = 8) -> onnx.ModelProto:
    """Return the decoder. Its caches have the shape [batch, heads, length, size]."""
    wide = heads * size
    x, cache = f"float[{batch},1,{wide}]", f"float[{batch},{heads},L,{size}]"
    weights = ", ".join(f"float[{wide},{wide}] {name}" for name in _WEIGHTS)
    text = f"""<ir_version: 10, opset_import: ["": 18]>
        g (int64 steps, {x} x0, {cache.replace("L", "P")} k0, {cache.replace("L", "P")} v0)
            => ({x} xT, {cache.replace("L", "K")} kT, {cache.replace("L", "V")} vT, float[T,{batch},1,{wide}] ys)
        <{weights}, int64[4] split = {{ {batch}, 1, {heads}, {size} }}, int64[3] join = {{ {batch}, 1, {wide} }},
            float scale = {{ {size**-0.5} }}, bool on = {{ 1 }}> {{
            xT, kT, vT, ys = Loop <body = b (int64 i, bool c, {x} x, {cache} k, {cache} v)
                => (bool c1, {x} x1, {cache.replace("L", "L1")} k1, {cache.replace("L", "L1")} v1, {x} y) {{
                c1 = Identity (c) {_BODY}
            }}> (steps, on, x0, k0, v0)
        }}"""
    return _with_weights(text, dict.fromkeys(_WEIGHTS, (wide, wide)))


_WEIGHTS = ("wq", "wk", "wv", "wo")


def decoder_feeds(batch: int, past: int, steps: int, heads: int = 2, size: int = 8) -> dict[str, np.ndarray]:
    """Return inputs of the decoder, with caches of the length ``past``."""
    random = np.random.default_rng(past)
    shapes = {"x0": (batch, 1, heads * size), "k0": (batch, heads, past, size), "v0": (batch, heads, past, size)}
    drawn = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return {"steps": np.array(steps), **drawn}


def _with_weights(text: str, shapes: dict[str, tuple[int, ...]]) -> onnx.ModelProto:
    """Return a model whose initializers of these shapes hold random numbers."""
    model = parsed(text)
    random = np.random.default_rng(0)
    drawn = {name: (random.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32) for name, shape in shapes.items()}
    kept = [each for each in model.graph.initializer if each.name not in drawn]
    del model.graph.initializer[:], model.graph.value_info[:]
    model.graph.initializer.extend([*kept, *(numpy_helper.from_array(array, name) for name, array in drawn.items())])
    return model


_CHOICE = {
    "before": ("kb = Gather <axis = 0> (k, beam)  keys = Concat <axis = 1> (kb, e)", "k1 = Identity (keys)"),
    "after": ("keys = Concat <axis = 1> (k, e)", "k1 = Gather <axis = 0> (keys, next_beam)"),
}


def beam_decoder(keep: str) -> onnx.ModelProto:
    """Return a decoder with 4 beams that ends when all beams have chosen the token 0.

    ``keep``: when it chooses the rows of the cache that its beams keep, "before" or "after" the step adds to the cache.
    """
    text = f"""<ir_version: 10, opset_import: ["": 18]>
        g (int64 steps, int64[4] t0) => (int64[4,T] all, float[4,K,8] kT, float[4] sT)
        <float[11,8] table, float[8,11] out, bool on = {{ 1 }}, int64[1] four = {{ 4 }}, int64[1] flat = {{ -1 }}, int64 words = {{ 11 }},
            int64 none = {{ 0 }}, float[4] s0 = {{ 0, -1, -2, -3 }}, int64[1] one = {{ 1 }}, int64[4] b0 = {{ 0, 1, 2, 3 }},
            int64[3] empty = {{ 4, 0, 8 }}, int64[2] nothing = {{ 4, 0 }}> {{
            k0 = ConstantOfShape <value = float[1] {{ 0 }}> (empty)  a0 = ConstantOfShape <value = int64[1] {{ 0 }}> (nothing)
            tT, bT, sT, kT, all = Loop <body = b (int64 i, bool c, int64[4] t, int64[4] beam, float[4] s, float[4,L,8] k, int64[4,M] a)
                => (bool c1, int64[4] t1, int64[4] next_beam, float[4] s1, float[4,L1,8] k1, int64[4,M1] a1) {{
                e0 = Gather (table, t)  e = Unsqueeze (e0, one)  {_CHOICE[keep][0]}
                kt = Transpose <perm = [0, 2, 1]> (keys)  w0 = MatMul (e, kt)  w = Softmax (w0)  h0 = MatMul (w, keys)
                h = Squeeze (h0, one)  l0 = MatMul (h, out)  l = LogSoftmax (l0)  s2 = Unsqueeze (s, one)  l2 = Add (l, s2)
                l3 = Reshape (l2, flat)  s1, place = TopK (l3, four)  next_beam = Div (place, words)  t1 = Mod (place, words)
                {_CHOICE[keep][1]}
                old = Gather <axis = 0> (a, next_beam)  t2 = Unsqueeze (t1, one)  a1 = Concat <axis = 1> (old, t2)
                ends = Equal (t1, none)  n = Cast <to = 1> (ends)  least = ReduceMin <keepdims = 0> (n)  m = Cast <to = 9> (least)
                c1 = Not (m)
            }}> (steps, on, t0, b0, s0, k0, a0)
        }}"""
    return _with_weights(text, {"table": (11, 8), "out": (8, 11)})
