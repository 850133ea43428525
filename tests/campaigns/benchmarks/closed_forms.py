"""Loops that have a form for all steps at once, against what ``optimize`` makes of them: ``python -m tests.campaigns benchmarks.closed_forms``.

For each: the original and the optimised model, in one process, interleaved, with one thread: the best of several rounds in
microseconds, and their ratio. A word on the command line chooses the loops whose names hold it.
"""

import sys
import time
from collections.abc import Iterator
from functools import partial

import numpy as np
import onnx

import ortscan
from tests.campaigns.benchmarks.timing import best_of, session_of
from tests.support.text import model_from_text

__all__ = ["Timed", "best_of_models", "loops", "main"]

Timed = tuple[str, onnx.ModelProto, dict[str, np.ndarray]]

_ROUNDS, _SECONDS = 9, 0.03
_SIZES = ((8, 4), (64, 16), (1024, 1), (1024, 16), (1024, 256), (4096, 1024))
_ANY = ((16, 16), (1000, 1), (1000, 16), (1000, 256), (16000, 1))
"""How many steps how wide rows have, where the model leaves the number of steps open."""
_STARTS = {"sum": 0, "product": 1}
"""What a state begins with, where the model has that number, in place of an input."""
_STEPS = {
    "sum": ("float", "n = Add (s, x)", 18),
    "product": ("float", "n = Mul (s, x)", 26),
    "maximum": ("float", "n = Max (s, x)", 18),
    "any": ("bool", "n = Or (s, x)", 18),
    "logsumexp": (
        "float",
        "m = Max (s, x) a = Sub (s, m) b = Sub (x, m) c = Exp (a) d = Exp (b) e = Add (c, d) f = Log (e) n = Add (m, f)",
        18,
    ),
}
_LINEAR = {
    "EMA": ("d = Sub (a, s1) e = Mul (d, g) n1 = Add (s1, e) y = Identity (n1)", "float g = {0.1}", 1),
    "biquad": (
        "x = Identity (a) p = Mul (b0, x) y = Add (p, s1) q = Mul (b1, x) r = Mul (a1, y) d = Sub (q, r) n1 = Add (d, s2)"
        " u = Mul (b0, x) w = Mul (a2, y) n2 = Sub (u, w)",
        "float b0 = {0.1}, float b1 = {0.2}, float a1 = {-1.6}, float a2 = {0.7}",
        2,
    ),
    "linear recurrence": ("m = Mul (a, s1) n1 = Add (m, b) y = Identity (n1)", "float one = {1}", 1),
    "minGRU": (
        "z = Sigmoid (a) h = Tanh (b) o = Sub (one, z) p = Mul (o, s1) q = Mul (z, h) n1 = Add (p, q) y = Identity (n1)",
        "float one = {1}",
        1,
    ),
}


def loops() -> Iterator[Timed]:
    """Yield a name, a model and feeds of each loop."""
    for name, (kind, step, opset) in _STEPS.items():
        for steps, width in _SIZES:
            yield _loop(f"{name} T={steps} D={width}", kind, step, opset, steps, width, stacked=True)
            yield _loop(f"{name}, last value T={steps} D={width}", kind, step, opset, steps, width, stacked=False)
    for name, start in _STARTS.items():
        for steps, width in _SIZES:
            yield _from_constant(name, start, steps, width)
    for steps, width in _SIZES:
        yield _mean(f"running mean T={steps} D={width}", steps, width)
    for steps, width in ((16000, 1), *_SIZES):
        for name, (step, weights, count) in _LINEAR.items():
            yield _linear(f"{name} T={steps} D={width}", step, weights, count, steps, width)
    for steps, width in _ANY:
        for name, (step, weights, count) in _LINEAR.items():
            yield _of_any_steps(*_linear(f"{name}, any T, T={steps} D={width}", step, weights, count, steps, width), steps)
    yield _kalman(1000)
    for heads, keys, values in ((1, 8, 8), (4, 32, 32), (16, 16, 16), (16, 64, 64), (1, 256, 256)):
        yield _attention(f"attention {heads}x{keys}x{values}", 128, heads, keys, values)


def _loop(name: str, kind: str, step: str, opset: int, steps: int, width: int, *, stacked: bool) -> Timed:
    results = f"{kind}[{steps}, {width}] ys" if stacked else f"{kind}[{width}] last"
    text = f"""g ({kind}[{width}] s0, {kind}[{steps}, {width}] xs) => ({results}) {{
        last{", ys" if stacked else ""} = Scan <num_scan_inputs = 1, body = b ({kind}[{width}] s, {kind}[{width}] x)
            => ({kind}[{width}] n{f", {kind}[{width}] y" if stacked else ""}) {{ {step} {"y = Identity (n)" if stacked else ""} }}> (s0, xs)
    }}"""
    rng = np.random.default_rng(0)
    xs = rng.random((steps, width)) < 0.01 if kind == "bool" else (rng.standard_normal((steps, width)) / 8 + 1).astype(np.float32)
    return name, model_from_text(text, opset), {"s0": np.zeros(width, xs.dtype) + xs[0], "xs": xs}


def _linear(name: str, step: str, weights: str, count: int, steps: int, width: int) -> Timed:
    """Return a loop of ``count`` states s1, s2, ..., which become n1, n2, ..., on two scanned inputs, a and b."""
    one, stack = f"float[{width}]", f"float[{steps}, {width}]"
    states = [str(number + 1) for number in range(count)]
    text = f"""g ({", ".join(f"{one} z{s}" for s in states)}, {stack} as, {stack} bs) => ({stack} ys) <{weights}> {{
        {", ".join(f"f{s}" for s in states)}, ys = Scan <num_scan_inputs = 2, body = l ({", ".join(f"{one} s{s}" for s in states)},
            {one} a, {one} b) => ({", ".join(f"{one} n{s}" for s in states)}, {one} y) {{ {step} }}>
            ({", ".join(f"z{s}" for s in states)}, as, bs)
    }}"""
    rng = np.random.default_rng(0)
    stacks = {name: rng.uniform(0.5, 1, (steps, width)).astype(np.float32) for name in ("as", "bs")}
    return name, model_from_text(text, 18), stacks | {f"z{s}": np.ones(width, np.float32) for s in states}


def _from_constant(name: str, start: int, steps: int, width: int) -> Timed:
    """A state that begins with a number of the model's own."""
    kind, step, opset = _STEPS[name]
    _, model, feeds = _loop(name, kind, step, opset, steps, width, stacked=True)
    del model.graph.input[0]
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.full(width, start, np.float32), "s0"))
    return f"{name} from {start} T={steps} D={width}", model, {"xs": feeds["xs"]}


def _of_any_steps(name: str, model: onnx.ModelProto, feeds: dict[str, np.ndarray], steps: int) -> Timed:
    """The same loop where the model does not tell how many steps there are."""
    for info in (*model.graph.input, *model.graph.output):
        for dim in info.type.tensor_type.shape.dim[:1]:
            if dim.dim_value == steps and len(info.type.tensor_type.shape.dim) > 1:
                dim.dim_param = "T"
    return name, model, feeds


def _kalman(steps: int) -> Timed:
    text = f"""g (float[4] s0, float[{steps}, 2] zs) => (float[{steps}, 4] ys) <float[4, 4] A = {{1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1}},
        float[2, 4] C = {{1, 0, 0, 0, 0, 0, 1, 0}}, float[4, 2] K = {{0.4, 0, 0.1, 0, 0, 0.4, 0, 0.1}}> {{
        f, ys = Scan <num_scan_inputs = 1, body = b (float[4] s, float[2] z) => (float[4] n, float[4] y) {{
            p = MatMul (A, s) c = MatMul (C, p) e = Sub (z, c) k = MatMul (K, e) n = Add (p, k) y = Identity (n) }}> (s0, zs)
    }}"""
    rng = np.random.default_rng(0)
    feeds = {"s0": np.zeros(4, np.float32), "zs": rng.standard_normal((steps, 2)).astype(np.float32)}
    return f"Kalman, constant gain T={steps}", model_from_text(text, 18), feeds


def _mean(name: str, steps: int, width: int) -> Timed:
    text = f"""g (float[{steps}, {width}] xs) => (float[{steps}, {width}] ys) <float[{width}] s0 = {{{", ".join("0" * width)}}}, float c0 = {{0}}> {{
        last, c, ys = Scan <num_scan_inputs = 1, body = b (float[{width}] s, float k, float[{width}] x)
            => (float[{width}] n, float k1, float[{width}] y) {{ one = Constant <value = float {{1}}> ()
            k1 = Add (k, one) d = Sub (x, s) e = Div (d, k1) n = Add (s, e) y = Identity (n) }}> (s0, c0, xs)
    }}"""
    xs = np.random.default_rng(0).standard_normal((steps, width)).astype(np.float32)
    return name, model_from_text(text, 18), {"xs": xs}


def _attention(name: str, steps: int, heads: int, keys: int, values: int) -> Timed:
    """A matrix for each head that decays by an Exp, takes up keys and values, and is read by queries."""
    sizes = {"k": f"{heads},{keys}", "v": f"{heads},{values}", "q": f"{heads},{keys}", "g": f"{heads},1"}
    text = f"""g (float[{heads},{keys},{values}] S0, {", ".join(f"float[{steps},{size}] {name}s" for name, size in sizes.items())})
        => (float[{steps},{heads},{values}] ys) {{
        last, ys = Scan <num_scan_inputs = 4, body = b (float[{heads},{keys},{values}] S,
            {", ".join(f"float[{size}] {name}" for name, size in sizes.items())}) => (float[{heads},{keys},{values}] n, float[{heads},{values}] y) {{
            end = Constant <value = int64[1] {{-1}}> ()  middle = Constant <value = int64[1] {{-2}}> ()
            a = Exp (g)  au = Unsqueeze (a, end)  d = Mul (S, au)  ku = Unsqueeze (k, end)  vu = Unsqueeze (v, middle)
            o = MatMul (ku, vu)  n = Add (d, o)  qu = Unsqueeze (q, middle)  r = MatMul (qu, n)  y = Squeeze (r, middle) }}>
            (S0, ks, vs, qs, gs) }}"""
    rng, model = np.random.default_rng(0), model_from_text(text, 18)
    shapes = {info.name: [dim.dim_value for dim in info.type.tensor_type.shape.dim] for info in model.graph.input}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) / 8 for name, shape in shapes.items()}
    return name, model, feeds | {"gs": -np.abs(feeds["gs"])}


def best_of_models(models: list[onnx.ModelProto], feeds: dict[str, np.ndarray], rounds: int = _ROUNDS) -> list[float]:
    """Return the seconds of each model, in turn, the best of several rounds."""
    return best_of([partial(session_of(model).run, None, feeds) for model in models], rounds, _SECONDS, time.perf_counter)


def main() -> None:
    chosen = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, model, feeds in loops():
        if chosen not in name:
            continue
        result = ortscan.optimize(model)
        left = sum(node.op_type in ("Scan", "Loop") for node in result.graph.node)
        before, after = best_of_models([model, result], feeds)
        print(f"{name:32} {before * 1e6:9.1f} {after * 1e6:9.1f} {before / after:7.2f}{'  loop left' if left else ''}", flush=True)


if __name__ == "__main__":
    main()
