"""Recurrences that have a form for all steps at once, each with what it computes in double, and near misses that have none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from tests.support.text import model_from_text

__all__ = ["FAMILIES", "NEAR_MISSES", "Family", "Sizes", "exact", "feeds_of", "model_of"]

FLOATS = ("float", "double", "float16")
NUMBERS = (*FLOATS, "int32", "int64")
DTYPES = {"float": np.float32, "double": np.float64, "float16": np.float16, "int32": np.int32, "int64": np.int64, "bool": np.bool_}


@dataclass(frozen=True)
class Family:
    """``body``: the nodes that make n1, n2, ... of the states s1, s2, ..., and a result y, of the rows x and a.

    ``step``: the same of arrays in double: (states, x, a) -> (states, y). ``kinds``: types of elements. ``starts``: of the states.
    """

    body: str
    step: Callable[..., tuple[Sequence[np.ndarray], np.ndarray]]
    kinds: Sequence[str] = FLOATS
    states: int = 1
    opset: int = 18
    starts: Sequence[float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Sizes:
    """How many steps of how wide rows of which type; ``free``: whether the model leaves that open."""

    steps: int
    width: int
    kind: str
    free: bool = False


def _one(
    function: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
) -> Callable[..., tuple[list[np.ndarray], np.ndarray]]:
    def step(states: Sequence[np.ndarray], x: np.ndarray, a: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        after = function(states[0], x, a)
        return [after], after

    return step


def _biquad(states: Sequence[np.ndarray], x: np.ndarray, _: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    y = 0.1 * x + states[0]
    return [0.2 * x + 1.6 * y + states[1], 0.1 * x - 0.7 * y], y


def _mean(states: Sequence[np.ndarray], x: np.ndarray, _: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    count = states[1] + 1
    mean = states[0] + (x - states[0]) / count
    return [mean, count], mean


def _argument(states: Sequence[np.ndarray], x: np.ndarray, _: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    larger, place, count = x > states[0], states[1], states[2]
    return [np.where(larger, x, states[0]), np.where(larger, count, place), count + 1], np.where(larger, count, place)


_LOG = "m = Max (s1, x) d = Sub (s1, m) e = Sub (x, m) f = Exp (d) g = Exp (e) h = Add (f, g) l = Log (h) n1 = Add (m, l) y = Identity (n1)"
_BIQUAD = (
    "p = Mul (x, tenth) y = Add (p, s1) q = Mul (x, fifth) r = Mul (y, more) t = Add (q, r) n1 = Add (t, s2)"
    " u = Mul (y, less) n2 = Sub (p, u)"
)
FAMILIES: Mapping[str, Family] = {
    "sum": Family("n1 = Add (s1, x) y = Identity (n1)", _one(lambda s, x, a: s + x), NUMBERS),
    "difference": Family("n1 = Sub (s1, x) y = Identity (n1)", _one(lambda s, x, a: s - x), NUMBERS),
    "product": Family("n1 = Mul (s1, x) y = Identity (n1)", _one(lambda s, x, a: s * x), NUMBERS, opset=26, starts=(1.0,)),
    "product in blocks": Family(
        "n1 = Mul (s1, x) y = Identity (n1)", _one(lambda s, x, a: s * x), ("float", "double", "int32", "int64"), starts=(1.0,)
    ),
    "maximum": Family("n1 = Max (s1, x) y = Identity (n1)", _one(lambda s, x, a: np.maximum(s, x)), NUMBERS),
    "minimum": Family("n1 = Min (x, s1) y = Identity (n1)", _one(lambda s, x, a: np.minimum(s, x)), NUMBERS),
    "larger": Family(
        "g = Greater (x, s1) n1 = Where (g, x, s1) y = Identity (n1)", _one(lambda s, x, a: np.where(x > s, x, s)), NUMBERS
    ),
    "latch": Family(
        "g = Greater (a, x) n1 = Where (g, x, s1) y = Identity (n1)", _one(lambda s, x, a: np.where(a > x, x, s)), NUMBERS
    ),
    "argument of the largest": Family(
        "g = Greater (x, s1) n1 = Where (g, x, s1) n2 = Where (g, s3, s2) n3 = Add (s3, one) y = Identity (n2)",
        _argument,
        ("int64",),
        3,
    ),
    "logarithm of a sum": Family(_LOG, _one(lambda s, x, a: np.logaddexp(s, x))),
    "mean": Family("n2 = Add (s2, one) d = Sub (x, s1) e = Div (d, n2) n1 = Add (s1, e) y = Identity (n1)", _mean, states=2),
    "moving average": Family(
        "d = Sub (x, s1) e = Mul (d, tenth) n1 = Add (s1, e) y = Identity (n1)", _one(lambda s, x, a: s + (x - s) * 0.1)
    ),
    "decay": Family("d = Mul (s1, half) n1 = Add (d, x) y = Identity (n1)", _one(lambda s, x, a: s * 0.5 + x)),
    "biquad": Family(_BIQUAD, _biquad, states=2),
    "recurrence": Family(
        "g = Sigmoid (a) d = Mul (g, s1) n1 = Add (d, x) y = Identity (n1)", _one(lambda s, x, a: s / (1 + np.exp(-a)) + x)
    ),
    "minGRU": Family(
        "z = Sigmoid (a) h = Tanh (x) o = Sub (one, z) p = Mul (o, s1) q = Mul (z, h) n1 = Add (p, q) y = Identity (n1)",
        _one(lambda s, x, a: s * (1 - 1 / (1 + np.exp(-a))) + np.tanh(x) / (1 + np.exp(-a))),
    ),
}
"""What ``optimize`` has a form for."""

NEAR_MISSES: Mapping[str, str] = {
    "a square": "p = Mul (s1, s1) q = Mul (p, tenth) n1 = Add (q, x)",
    "a bent state": "t = Tanh (s1) n1 = Add (t, x)",
    "a sum kept above 0": "t = Add (s1, x) n1 = Relu (t)",
    "a sum kept between": "t = Add (s1, x) u = Neg (one) v = Max (t, u) n1 = Min (v, one)",
    "a distance": "d = Sub (s1, x) n1 = Abs (d)",
    "a quotient by the state": "t = Abs (s1) u = Add (t, one) n1 = Div (x, u)",
    "a sign": "t = Sign (s1) u = Mul (t, x) n1 = Add (s1, u)",
    "a wave": "t = Sin (s1) n1 = Add (t, x)",
    "whole numbers": "t = Floor (s1) n1 = Add (t, x)",
    "a choice by the state": "g = Less (s1, x) u = Add (s1, x) v = Sub (x, s1) n1 = Where (g, u, v)",
    "a choice of another": "g = Greater (x, s1) u = Neg (x) n1 = Where (g, u, s1)",
    "the larger of a share": "t = Mul (s1, half) u = Max (t, x) v = Tanh (u) n1 = Add (v, x)",
    "a root of squares": "p = Mul (s1, s1) q = Mul (x, x) r = Add (p, q) n1 = Sqrt (r)",
    "a gate of its own": "z = Sigmoid (s1) p = Mul (z, s1) n1 = Add (p, x)",
    "a gate of both": "t = Add (s1, a) z = Sigmoid (t) p = Mul (z, s1) n1 = Add (p, x)",
    "a power": "t = Abs (s1) u = Exp (x) v = Sigmoid (u) n1 = Pow (t, v)",
    "a logarithm of more than two": "e = Exp (s1) f = Exp (x) g = Add (e, f) h = Mul (e, half) i = Add (g, h) n1 = Log (i)",
    "a logarithm of a difference": "e = Abs (s1) f = Exp (e) g = Exp (x) h = Add (f, g) n1 = Log (h)",
    "the largest of the row": "m = ReduceMax <keepdims = 1> (s1) n1 = Sub (x, m)",
    "shares of the row": "m = Softmax <axis = 0> (s1) n1 = Add (m, x)",
    "a remainder": "t = Add (s1, x) n1 = Mod <fmod = 1> (t, one)",
    "a product of both": "p = Mul (s1, x) q = Mul (p, s1) r = Tanh (q) n1 = Add (r, x)",
}
"""What looks like one of these, and has to stay a loop."""


def model_of(body: str, sizes: Sizes, states: int = 1, opset: int = 18) -> onnx.ModelProto:
    kind, numbers = sizes.kind, range(1, states + 1)
    steps, width = ("T", "D") if sizes.free else (sizes.steps, sizes.width)
    row, stack = f"{kind}[{width}]", f"{kind}[{steps},{width}]"
    weights = {"one": 1.0, "half": 0.5, "tenth": 0.1, "fifth": 0.2, "more": 1.6, "less": 0.7}
    listed = ", ".join(f"{kind} {name} = {{{_written(number, kind)}}}" for name, number in weights.items())
    results = "" if " y = " in body or body.startswith("y = ") else " y = Identity (n1)"
    text = f"""g ({", ".join(f"{row} z{i}" for i in numbers)}, {stack} xs, {stack} as) => ({", ".join(f"{row} f{i}" for i in numbers)}, {stack} ys)
        <{listed}> {{ {", ".join(f"f{i}" for i in numbers)}, ys = Scan <num_scan_inputs = 2, body = b (
            {", ".join(f"{row} s{i}" for i in numbers)}, {row} x, {row} a) => ({", ".join(f"{row} n{i}" for i in numbers)}, {row} y)
            {{ {body}{results} }}> ({", ".join(f"z{i}" for i in numbers)}, xs, as) }}"""
    return model_from_text(text, opset)


def _written(number: float, kind: str) -> float | int:
    """Return a number as the text of a model has it: of half precision its bits."""
    return int(np.float16(number).view(np.uint16)) if kind == "float16" else number if kind in FLOATS else 1


def feeds_of(sizes: Sizes, starts: Sequence[float], seed: int, *, near_one: bool = False) -> dict[str, np.ndarray]:
    draw, dtype, shape = np.random.default_rng(seed), DTYPES[sizes.kind], (sizes.steps, sizes.width)
    feeds = {f"z{place + 1}": np.full(sizes.width, start, dtype) for place, start in enumerate(starts)}
    for name in ("xs", "as"):
        if sizes.kind in FLOATS:
            values = draw.standard_normal(shape)
            feeds[name] = (1 + values / 100 if near_one else values).astype(dtype)
        else:
            feeds[name] = draw.integers(-9, 10, shape).astype(dtype)
    return feeds


def exact(family: Family, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return what the family computes: of floats in a wider type, of integers in theirs."""
    wider = np.longdouble if feeds["xs"].dtype == np.float64 else np.float64
    wide = {name: value.astype(wider) if value.dtype.kind == "f" else value for name, value in feeds.items()}
    states, rows = [wide[f"z{place + 1}"] for place in range(family.states)], list[np.ndarray]()
    for x, a in zip(wide["xs"], wide["as"], strict=True):
        found, y = family.step(states, x, a)
        states = list(found)
        rows.append(y)
    return [*states, np.array(rows).reshape(wide["xs"].shape)]
