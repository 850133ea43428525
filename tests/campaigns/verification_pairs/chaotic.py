"""Models whose results move far when a number inside rounds otherwise, drawn from seeds; each beside its optimised and native form.

    s' = 3.9 * s * (1 - s)        float32 and float64 agree for 30 steps, and no longer

A result that is no further from float64 than the original is equal. The same result of a model with one weight changed is not.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx

import ortscan
from tests.support.text import model_from_text

__all__ = ["CHAOTIC", "ChaoticModel", "chaotic_models", "forms"]

_STEPS = (30, 100, 300, 1000)
_GATES = """i, f, g, o = Split <axis = 1, num_outputs = 4> (z) i1 = Sigmoid(i) f1 = Sigmoid(f) g1 = Tanh(g) o1 = Sigmoid(o)
  fc = Mul(f1, c) ig = Mul(i1, g1) c1 = Add(fc, ig) t = Tanh(c1) h1 = Mul(o1, t)"""
_PROJECTED = "a = MatMul(x, W) r = MatMul(h, R) p = Add(a, r)"
_STABLE = """i, f, g, o = Split <axis = 1, num_outputs = 4> (z) n0 = Neg(f) n1 = Softplus(n0) l = Neg(n1) lm = Add(l, m) m1 = Max(lm, i)
  i0 = Sub(i, m1) i1 = Exp(i0) f0 = Sub(lm, m1) f1 = Exp(f0) g1 = Tanh(g) o1 = Sigmoid(o)
  fc = Mul(f1, c) ig = Mul(i1, g1) c1 = Add(fc, ig) fn = Mul(f1, n) n2 = Add(fn, i1) q = Div(c1, n2) h1 = Mul(o1, q)"""
_QUANTIZED = "{0}q = QuantizeLinear({0}, step, zero) {0}d = DequantizeLinear({0}q, step, zero)"
_INTEGERS = """hq, hs, hz = DynamicQuantizeLinear(h) hi = MatMulInteger(hq, RQ, hz) hf = Cast <to = 1> (hi) w = Mul(hs, rs) r = Mul(hf, w)
  a = MatMul(x, W) p = Add(a, r)"""
_ONE = "u = Constant <value_float = 1.0> ()"


@dataclass(frozen=True)
class ChaoticModel:
    """A model, and ``wrong``: the same with weights that are 20 % larger."""

    name: str
    model: onnx.ModelProto
    wrong: onnx.ModelProto


@dataclass(frozen=True)
class _Family:
    """Bodies of one kind. ``states`` and ``weights`` have their widths in units of the hidden size."""

    body: str
    states: tuple[str, ...]
    weights: Mapping[str, tuple[int, ...]]
    gains: tuple[float, float]
    kind: str = "float"
    opset: int = 18


def _recurrent(body: str, states: str, gates: int, gains: tuple[float, float], kind: str = "float", **more: int) -> _Family:
    return _Family(body, tuple(states), {"W": (1, gates), "R": (1, gates), "b": (gates,)} | {"k": (gates,)}, gains, kind, **more)


_NORMED = f"{_PROJECTED} n0 = LayerNormalization <axis = -1> (p, k) z = Add(n0, b)"
_RNN = f"{_PROJECTED} z = Add(p, b) h1 = Tanh(z)"
CHAOTIC: Mapping[str, _Family] = {
    "LayerNorm-LSTM": _recurrent(f"{_NORMED} {_GATES}", "hc", 4, (1, 4)),
    "sLSTM": _recurrent(f"{_PROJECTED} z = Add(p, b) {_STABLE}", "hcnm", 4, (1, 4)),
    "tanh RNN": _recurrent(_RNN, "h", 1, (1.5, 6)),
    "logistic map": _Family(
        f"{_ONE} d = Sub(u, h) m = Mul(h, d) p = Mul(m, k) e = MatMul(x, W) e1 = Abs(e) e2 = Tanh(e1) s = Sub(p, h) t = Mul(s, j) "
        "v = Add(h, t) w = Mul(e2, i) h0 = Add(v, w) h1 = Clip(h0, i, u)",
        ("h",),
        {"W": (1, 1), "k": (1,), "j": (1,), "i": ()},
        (0.2, 1),
    ),
    "sine map": _Family(
        "a = MatMul(x, W) r = MatMul(h, R) p = Add(a, r) z = Mul(p, k) h1 = Sin(z)",
        ("h",),
        {"W": (1, 1), "R": (1, 1), "k": (1,)},
        (1, 3),
    ),
    "float16 LSTM": _recurrent(f"{_PROJECTED} z = Add(p, b) {_GATES}", "hc", 4, (1, 4), "float16"),
    "float16 RNN": _recurrent(_RNN, "h", 1, (1, 3), "float16"),
    "QDQ LSTM": _recurrent(
        f"{_QUANTIZED.format('h')} {_QUANTIZED.format('x')} a = MatMul(xd, W) r = MatMul(hd, R) p = Add(a, r) z = Add(p, b) {_GATES}",
        "hc",
        4,
        (1, 3),
    ),
    "QDQ RNN": _recurrent(
        f"{_QUANTIZED.format('h')} a = MatMul(x, W) r = MatMul(hd, R) p = Add(a, r) z = Add(p, b) h1 = Tanh(z)", "h", 1, (1, 4)
    ),
    "DynamicQuantize LSTM": _recurrent(f"{_INTEGERS} z = Add(p, b) {_GATES}", "hc", 4, (1, 3)),
    "DynamicQuantize RNN": _recurrent(f"{_INTEGERS} z = Add(p, b) h1 = Tanh(z)", "h", 1, (1, 4)),
}
"""The body of a step reads ``x`` and states such as ``h``, and returns ``h1``; sizes of weights are in units of the hidden size."""


def chaotic_models(seeds: int) -> Iterator[ChaoticModel]:
    """Return a model of each family for each seed."""
    for seed in range(seeds):
        for name, family in CHAOTIC.items():
            yield _model(name, family, seed)


def _model(name: str, family: _Family, seed: int) -> ChaoticModel:
    random = np.random.default_rng([seed, sum(name.encode())])
    hidden, batch = int(random.choice((8, 16, 32, 64))), int(random.choice((1, 2, 4, 8)))
    steps, gain = _STEPS[seed % len(_STEPS)], float(random.uniform(*family.gains))
    weights = _weights(family, hidden, gain, random)
    row = f"{family.kind}[{batch}, {hidden}]"
    taken = ", ".join(f"{row} {state}" for state in family.states)
    returned = ", ".join(f"{row} {state}{_after(state)}" for state in family.states)
    initial = ", ".join(f"{row} {state}0s" for state in family.states)
    text = f"""g ({initial}, {family.kind}[{steps}, {batch}, {hidden}] xs) => ({family.kind}[{steps}, {batch}, {hidden}] ys) {{
      {", ".join(f"{state}l" for state in family.states)}, ys = Scan <num_scan_inputs = 1, body = b ({taken}, {row} x)
        => ({returned}, {row} y) {{ {family.body} y = Identity(h1) }}> ({", ".join(f"{state}0s" for state in family.states)}, xs) }}"""
    model = model_from_text(text, family.opset, check=False)
    wrong = onnx.ModelProto()
    wrong.CopyFrom(model)
    larger = {**weights, "W": (weights["W"] * np.asarray(1.2, weights["W"].dtype)).astype(weights["W"].dtype)}
    for proto, arrays in ((model, weights), (wrong, larger)):
        read = {one for node in proto.graph.node[0].attribute[0].g.node for one in node.input} | {
            one for attribute in proto.graph.node[0].attribute for node in attribute.g.node for one in node.input
        }
        proto.graph.initializer.extend(onnx.numpy_helper.from_array(array, key) for key, array in arrays.items() if key in read)
    return ChaoticModel(f"{name}, T={steps}, B={batch}, H={hidden}, gain {gain:.2g}, seed {seed}", model, wrong)


def _after(state: str) -> str:
    return "2" if state == "n" else "1"


def _weights(family: _Family, hidden: int, gain: float, random: np.random.Generator) -> dict[str, np.ndarray]:
    dtype = {"float": np.float32, "float16": np.float16}[family.kind]
    arrays = {}
    for key, sizes in family.weights.items():
        spread = gain / hidden**0.5 if len(sizes) > 1 else 0.3
        centre = 3.9 if key == "k" and "j" in family.weights else gain if key == "k" else 1.0 if key == "j" else 0.0
        shape = [hidden * size for size in sizes]
        array = np.asarray(0.02) if key == "i" else centre + (0.05 if centre else spread) * random.standard_normal(shape)
        arrays[key] = np.asarray(array).astype(dtype)
    quantized = gain * random.standard_normal((hidden, hidden * family.weights["W"][-1])) / hidden**0.5
    scale = float(np.abs(quantized).max() / 127)
    arrays |= {"RQ": np.round(quantized / scale).astype(np.int8), "rs": np.float32(scale).reshape(())}
    return arrays | {"step": np.float32(1 / 64).reshape(()), "zero": np.zeros((), np.int8)}


def forms(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Return what optimize makes of a model, without native loops and with."""
    for name, native in (("optimised", False), ("native", True)):
        yield name, ortscan.optimize(model, native=native, verify=False)
