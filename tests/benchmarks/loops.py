"""Loops to time, each a model and its feeds."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
import onnx.parser

from tests.support.layers import layer_feeds, layers

__all__ = ["STACKS", "TimedLoop", "timed_loops"]

STACKS = (
    ("LSTM", 256, 1),
    ("LSTM", 64, 8),
    ("LayerNorm-LSTM", 256, 1),
    ("LayerNorm-LSTM", 128, 1),
    ("LayerNorm-LSTM", 64, 8),
    ("sine cell", 256, 1),
    ("sine cell", 64, 1),
)
"""Stacks of two layers: the cell, its width and the batch."""

_HEADER = '<ir_version: 9, opset_import: ["": 18]>'


@dataclass(frozen=True)
class TimedLoop:
    name: str
    model: onnx.ModelProto
    feeds: dict[str, np.ndarray]
    options: dict[str, Any] = field(default_factory=dict)


def timed_loops() -> Iterator[TimedLoop]:
    draw = np.random.default_rng(0).standard_normal

    def floats(*shape: int) -> np.ndarray:
        return (draw(shape) / 8).astype(np.float32)

    yield _mlp(floats)
    yield _normalised_rows(floats)
    for options in ({}, {"fast_math": True}, {"fast_math": True, "target": "onnx"}):
        yield _distances(floats, 1000, 1000, 16, options)
    yield _distances(floats, 60, 8, 4, {})
    for hidden, batch in ((256, 1), (64, 1), (64, 8)):
        yield _lstm(floats, hidden, batch)
    hoisted = _lstm(floats, 256, 1)
    yield replace(hoisted, name=f"{hoisted.name}, kept in its loop", options={"skip": ["recurrent-cell"]})
    yield from layered_loops()


def layered_loops() -> Iterator[TimedLoop]:
    for cell, hidden, batch in STACKS:
        model = layers([cell] * 2, hidden, batch)
        yield TimedLoop(f"two layers of {cell} in one body, batch {batch}, width {hidden}", model, layer_feeds(model))


def _model(text: str, **weights: np.ndarray) -> onnx.ModelProto:
    model = onnx.parser.parse_model(_HEADER + text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    return model


def _mlp(floats: Any) -> TimedLoop:
    model = _model(
        """main (float[512,64] xs) => (float[512,64] ys) {
        ys = Scan <num_scan_inputs = 1, body = step (float[64] x) => (float[64] y) {
            a = MatMul(x, W1) b = Add(a, b1) c = Relu(b) d = MatMul(c, W2) e = Add(d, b2) y = Tanh(e)
        }> (xs) }""",
        W1=floats(64, 64),
        b1=floats(64),
        W2=floats(64, 64),
        b2=floats(64),
    )
    return TimedLoop("MLP per step, 512 steps of 64", model, {"xs": floats(512, 64)})


def _normalised_rows(floats: Any) -> TimedLoop:
    model = _model(
        """main (float[512,64] xs) => (float[512,64] ys) {
        ys = Scan <num_scan_inputs = 1, body = step (float[64] x) => (float[64] y) {
            a = LayerNormalization <axis = -1> (x, scale, bias) y = Softmax <axis = -1> (a)
        }> (xs) }""",
        scale=floats(64),
        bias=floats(64),
    )
    return TimedLoop("LayerNorm and Softmax per row, 512 of 64", model, {"xs": floats(512, 64)})


def _distances(floats: Any, rows: int, points: int, width: int, options: dict[str, Any]) -> TimedLoop:
    model = _model(
        f"""main (float[{rows},{width}] xs, float[N,{width}] points) => (float[{rows},N] ds) {{
        ds = Scan <num_scan_inputs = 1, body = step (float[{width}] x) => (float[N] d) {{
            a = Sub(points, x) d = ReduceSumSquare <keepdims = 0> (a, axes)
        }}> (xs) }}""",
        axes=np.array([1], np.int64),
    )
    how = ", ".join(f"{key}={value}" for key, value in options.items()) or "exact"
    feeds = {"xs": floats(rows, width), "points": floats(points, width)}
    return TimedLoop(f"distances {rows} x {points} x {width}, {how}", model, feeds, options)


def _lstm(floats: Any, hidden: int, batch: int, steps: int = 100) -> TimedLoop:
    state = f"float[{batch},{hidden}]"
    model = _model(
        f"""main (float[{steps},{batch},{hidden}] xs, {state} h0, {state} c0) => ({state} hT, {state} cT, float[{steps},{batch},{hidden}] ys) {{
        hT, cT, ys = Scan <num_scan_inputs = 1, body = step ({state} h, {state} c, {state} x) => ({state} h2, {state} c2, {state} y) {{
            a = Gemm(x, W, b) r = Gemm(h, R, b) z = Add(a, r) i, f, g, o = Split <axis = 1, num_outputs = 4> (z)
            i1 = Sigmoid(i) f1 = Sigmoid(f) g1 = Tanh(g) o1 = Sigmoid(o) fc = Mul(f1, c) ig = Mul(i1, g1) c2 = Add(fc, ig)
            tc = Tanh(c2) h2 = Mul(o1, tc) y = Identity(h2)
        }}> (h0, c0, xs) }}""",
        W=floats(hidden, 4 * hidden),
        R=floats(hidden, 4 * hidden),
        b=floats(4 * hidden),
    )
    feeds = {"xs": floats(steps, batch, hidden), "h0": floats(batch, hidden), "c0": floats(batch, hidden)}
    return TimedLoop(f"LSTM, {steps} steps, batch {batch}, width {hidden}", model, feeds)
