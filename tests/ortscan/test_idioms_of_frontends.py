"""What front ends make of loops over time: torch's while_loop, TensorFlow's while with dead temporaries, a layer for each slice."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers, drawn
from tests.support.runtime import ort_run
from tests.support.text import model_from_text, parsed

STEP = "a = Gather (x, i) t = Tanh (a) q = Mul (s, t) s1 = Sub (q, a) i1 = Add (i, one) c1 = Less (i1, n)"
TORCH = {
    "a buffer written by numbers": """g (float[6,2,4] x, float[2,4] h) => (float[6,2,4] y, float[2,4] l) <int64 zero = {0}, int64 n = {6}, int64 one = {1}, int64[1] axis = {0}> {
        yes = Less (zero, n) shape = Shape (x) w0 = ConstantOfShape (shape)
        k, l, y = Loop <body = b (int64 it, bool c, int64 i, float[2,4] s, float[6,2,4] w) => (bool c1, int64 i1, float[2,4] s1, float[6,2,4] w1) { STEP
            u = Unsqueeze (s1, axis) m = Constant <value_ints = [-1]> () p = Reshape (i, m) r = Unsqueeze (p, axis) w1 = ScatterND (w, r, u) }> (, yes, zero, h, w0) }""",
    "a tensor that grows": """g (float[6,2,4] x, float[2,4] h) => (float[N,2,4] y, float[2,4] l) <int64 zero = {0}, int64 n = {6}, int64 one = {1}, int64[1] axis = {0}> {
        yes = Less (zero, n) dims = Constant <value_ints = [0, 2, 4]> () w0 = ConstantOfShape (dims)
        k, l, y = Loop <body = b (int64 it, bool c, int64 i, float[2,4] s, float[N,2,4] w) => (bool c1, int64 i1, float[2,4] s1, float[M,2,4] w1) { STEP
            u = Unsqueeze (s1, axis) w1 = Concat <axis = 0> (w, u) }> (, yes, zero, h, w0) }""",
    "as many rows as there are": """g (float[T,2,4] x, float[2,4] h) => (float[2,4] l) <int64 zero = {0}, int64 one = {1}> {
        dims = Shape (x) n = Gather (dims, zero) yes = Less (zero, n)
        k, l = Loop <body = b (int64 it, bool c, int64 i, float[2,4] s) => (bool c1, int64 i1, float[2,4] s1) { STEP }> (, yes, zero, h) }""",
}
TENSORFLOW = {
    "a state that nobody reads": """g (float[6,2,4] x, float[2,4] h) => (float[2,4] l) <int32 zero = {0}, int32 n = {6}, int32 one = {1}, bool yes = {1}> {
        size = Constant <value_ints = [512, 512]> () w0 = ConstantOfShape (size)
        k, d, l = Loop <body = b (int64 it, bool c, int32 i, float[512,512] w, float[2,4] s) => (bool c1, int32 i1, float[512,512] w1, float[2,4] s1) { STEP
            f = Cast <to = 1> (i1) e = Add (w, f) w1 = Tanh (e) }> (, yes, zero, w0, h) }""",
    "a result that nobody reads": """g (float[6,2,4] x, float[2,4] h) => (float[2,4] l) <int64 zero = {0}, int64 n = {6}, int64 one = {1}, bool yes = {1}> {
        k, l, dead = Loop <body = b (int64 it, bool c, int64 i, float[2,4] s) => (bool c1, int64 i1, float[2,4] s1, float[512,512] w) { STEP
            size = Constant <value_ints = [512, 512]> () r = ReduceSum <keepdims = 0> (t) w = Expand (r, size) }> (, yes, zero, h) }""",
    "what only its sizes are read of": """g (float[6,2,4] x, float[2,4] h) => (float[2,4] l) <int64 zero = {0}, int64 n = {6}, int64 one = {1}, bool yes = {1}> {
        k, l = Loop <body = b (int64 it, bool c, int64 i, float[2,4] s) => (bool c1, int64 i1, float[2,4] s2) { STEP
            size = Constant <value_ints = [512, 512]> () r = ReduceSum <keepdims = 0> (t) w = Expand (r, size) e = Shape (w) f = Cast <to = 1> (e)
            m = ReduceMin <keepdims = 0> (f) s2 = Div (s1, m) }> (, yes, zero, h) }""",
}
SLICES = {
    "sliced and reshaped": ("s{t} = Slice (x, c{t}, c{u}, c1) r{t} = Reshape (s{t}, flat)", "d{t} = MatMul (r{t}, W) e{t} = Add (d{t}, b) a{t} = Relu (e{t})"),
    "gathered and squeezed": ("s{t} = Gather <axis = 1> (x, c{t}) r{t} = Squeeze (s{t}, c1)", "d{t} = Gemm (r{t}, W, b) e{t} = Tanh (d{t}) a{t} = Gemm (e{t}, V)"),
    "split": ("r{t} = Squeeze (p{t}, c1)", "d{t} = MatMul (r{t}, W) e{t} = Add (d{t}, b) a{t} = Sigmoid (e{t})"),
}  # fmt: skip


def compared(model: onnx.ModelProto, **options: object) -> list[str]:
    rng = np.random.default_rng(0)
    shapes = {info.name: [dim.dim_value or 6 for dim in info.type.tensor_type.shape.dim] for info in model.graph.input}
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    after = ortscan.optimize(model, **options)
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
    return [node.op_type for node in after.graph.node]


@pytest.mark.parametrize("form", [*TORCH, *TENSORFLOW])
def test_a_while_is_its_recurrence(form: str) -> None:
    text = (TORCH | TENSORFLOW)[form].replace("STEP", STEP)
    left = compared(model_from_text(text, 18, check=False))
    assert not {"Loop", "ScatterND", "Expand"} & set(left)
    assert "Tanh" in left or "If" in left


@pytest.mark.parametrize("form", SLICES)
def test_a_layer_for_each_slice_is_one_product_for_all(form: str) -> None:
    taken, layer = SLICES[form]
    head = "p0, p1, p2, p3, p4, p5 = Split <axis = 1, num_outputs = 6> (x)" if form == "split" else ""
    steps = " ".join(f"{taken} {layer} u{{t}} = Unsqueeze (a{{t}}, c1)".format(t=t, u=t + 1) for t in range(6))
    numbers = ", ".join(f"int64[1] c{t} = {{{t}}}" for t in range(7))
    text = f"g (float[2,6,3] x) => (float[2,6,4] y) <{numbers}, int64[2] flat = {{-1, 3}}> {{ {head} {steps} y = Concat <axis = 1> (u0, u1, u2, u3, u4, u5) }}"
    left = compared(parsed(text, weights=drawn(W=(3, 4), b=(4,), V=(4, 4))))
    assert left.count("MatMul") + left.count("Gemm") == (layer + " ").count("MatMul") + layer.count("Gemm")
