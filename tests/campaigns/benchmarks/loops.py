"""Loops to time, each a model and its feeds."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
import onnx.parser

from tests.support.layers import layer_feeds, layers
from tests.support.text import parsed

__all__ = ["STACKS", "TimedLoop", "loops_of_sizes", "timed_loops"]

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

    yield _mlp(floats, 512, 64)
    yield _normalised_rows(floats, 512, 64)
    for options in ({}, {"fast_math": True}, {"fast_math": True, "target": "onnx"}):
        yield _distances(floats, 1000, 1000, 16, options)
    yield _distances(floats, 60, 8, 4, {})
    for hidden, batch in ((256, 1), (64, 1), (64, 8)):
        yield _lstm(floats, hidden, batch)
    hoisted = _lstm(floats, 256, 1)
    yield replace(hoisted, name=f"{hoisted.name}, kept in its loop", options={"skip": ["recurrent-cell"]})
    yield from layered_loops()


def loops_of_sizes(steps: int, batch: int, width: int) -> Iterator[TimedLoop]:
    """The same loops at sizes of the caller's choice."""
    draw = np.random.default_rng(0).standard_normal

    def floats(*shape: int) -> np.ndarray:
        return draw(shape).astype(np.float32)

    yield _mlp(floats, steps, width)
    yield _normalised_rows(floats, steps, width)
    for options in ({}, {"fast_math": True}, {"fast_math": True, "target": "onnx"}):
        yield _distances(floats, steps, batch, width, options)
    lstm = _lstm(floats, width, batch, steps)
    yield lstm
    yield replace(lstm, name=f"{lstm.name}, kept in its loop", options={"skip": ["recurrent-cell"]})
    for cell in dict.fromkeys(cell for cell, _, _ in STACKS):
        for apart in (True, False):
            model = layers([cell] * 2, width, batch, steps=steps, apart=apart)
            yield TimedLoop(f"two layers of {cell}{', a loop each' if apart else ''}", model, layer_feeds(model))


def layered_loops() -> Iterator[TimedLoop]:
    for cell, hidden, batch in STACKS:
        model = layers([cell] * 2, hidden, batch)
        yield TimedLoop(f"two layers of {cell} in one body, batch {batch}, width {hidden}", model, layer_feeds(model))


def _model(text: str, **weights: np.ndarray) -> onnx.ModelProto:
    return parsed(text, weights=weights)


def _mlp(floats: Any, steps: int, width: int) -> TimedLoop:
    model = _model(
        f"""main (float[{steps},{width}] xs) => (float[{steps},{width}] ys) {{
        ys = Scan <num_scan_inputs = 1, body = step (float[{width}] x) => (float[{width}] y) {{
            a = MatMul(x, W1) b = Add(a, b1) c = Relu(b) d = MatMul(c, W2) e = Add(d, b2) y = Tanh(e)
        }}> (xs) }}""",
        W1=floats(width, width),
        b1=floats(width),
        W2=floats(width, width),
        b2=floats(width),
    )
    return TimedLoop(f"MLP per step, {steps} steps of {width}", model, {"xs": floats(steps, width)})


def _normalised_rows(floats: Any, rows: int, width: int) -> TimedLoop:
    model = _model(
        f"""main (float[{rows},{width}] xs) => (float[{rows},{width}] ys) {{
        ys = Scan <num_scan_inputs = 1, body = step (float[{width}] x) => (float[{width}] y) {{
            a = LayerNormalization <axis = -1> (x, scale, bias) y = Softmax <axis = -1> (a)
        }}> (xs) }}""",
        scale=floats(width),
        bias=floats(width),
    )
    return TimedLoop(f"LayerNorm and Softmax per row, {rows} of {width}", model, {"xs": floats(rows, width)})


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
