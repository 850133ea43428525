"""A greedy decoder with one layer of attention, whose caches grow by a Concat in each step."""

import numpy as np
import onnx
from onnx import numpy_helper

from tests.support.text import parsed

__all__ = ["decoder", "decoder_feeds"]

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
    model = parsed(text)
    random = np.random.default_rng(0)
    drawn = {name: (random.standard_normal((wide, wide)) / wide**0.5).astype(np.float32) for name in _WEIGHTS}
    kept = [each for each in model.graph.initializer if each.name not in drawn]
    del model.graph.initializer[:], model.graph.value_info[:]
    model.graph.initializer.extend([*kept, *(numpy_helper.from_array(array, name) for name, array in drawn.items())])
    return model


_WEIGHTS = ("wq", "wk", "wv", "wo")


def decoder_feeds(batch: int, past: int, steps: int, heads: int = 2, size: int = 8) -> dict[str, np.ndarray]:
    """Return inputs of the decoder, with caches of the length ``past``."""
    random = np.random.default_rng(past)
    shapes = {"x0": (batch, 1, heads * size), "k0": (batch, heads, past, size), "v0": (batch, heads, past, size)}
    drawn = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return {"steps": np.array(steps), **drawn}
