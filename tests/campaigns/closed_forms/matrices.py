"""Matrices that decay and take up outer products, in blocks of steps, against what they come to in double."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx

import ortscan
from tests.campaigns.closed_forms.checking import compared
from tests.support.runtime import ort_session, run_session
from tests.support.text import model_from_text

__all__ = ["DECAYS", "MatrixSizes", "check_matrix"]

DECAYS: Mapping[str, tuple[str, str]] = {
    "no decay": ("d = Identity (S)", ""),
    "a constant decay": ("c = Constant <value = KIND {0.875}> ()  d = Mul (c, S)", ""),
    "a decay by head": ("a = Sigmoid (g)  au = Unsqueeze (a, two)  d = Mul (S, au)", "{heads}"),
    "a decay by key": ("a = Sigmoid (g)  au = Unsqueeze (a, last)  d = Mul (S, au)", "{heads},{keys}"),
    "a decay of any sign": ("a = Identity (g)  au = Unsqueeze (a, two)  d = Mul (S, au)", "{heads}"),
}
"""How the matrix decays, and the sizes of what that is made of."""
_DTYPES = {"float": np.float32, "double": np.float64}
_OF_ANY_SIGN = (0.0, -0.0, 1.0, -1.0, 0.5, -0.9, 0.99, 1e-30, 1e-42)


@dataclass(frozen=True)
class MatrixSizes:
    """How many steps of how many matrices of which type; ``free``: whether the model leaves the number of steps open."""

    steps: int
    heads: int
    keys: int
    values: int
    kind: str
    free: bool = False


def check_matrix(name: str, sizes: MatrixSizes, seed: int, target: str) -> str:
    """Return what is wrong: errors that grow more than 4 times as fast as the loop's own, or nothing."""
    before, feeds = _model(name, sizes), _feeds(name, sizes, seed)
    after = ortscan.optimize(before, target=target, verify=False)
    loops, mine = (run_session(ort_session(one), feeds) for one in (before, after))
    return compared([_exact(name, feeds)], loops, mine)


def _model(name: str, sizes: MatrixSizes) -> onnx.ModelProto:
    (decay, gate), kind, steps = DECAYS[name], sizes.kind, "T" if sizes.free else sizes.steps
    heads, keys, values = sizes.heads, sizes.keys, sizes.values
    given = {"k": f"{heads},{keys}", "v": f"{heads},{values}", "q": f"{heads},{keys}"}
    given |= {"g": gate.format(heads=heads, keys=keys)} if gate else {}
    rows = ", ".join(f"{kind}[{size}] {one}" for one, size in given.items())
    text = f"""g ({kind}[{heads},{keys},{values}] S0, {", ".join(f"{kind}[{steps},{size}] {one}s" for one, size in given.items())})
        => ({kind}[{steps},{heads},{values}] ys) {{
        end, ys = Scan <num_scan_inputs = {len(given)}, body = b ({kind}[{heads},{keys},{values}] S, {rows})
            => ({kind}[{heads},{keys},{values}] n, {kind}[{heads},{values}] y) {{
            last = Constant <value = int64[1] {{-1}}> ()  row = Constant <value = int64[1] {{-2}}> ()
            two = Constant <value = int64[2] {{-1, -2}}> ()  {decay.replace("KIND", kind)}  ku = Unsqueeze (k, last)
            vu = Unsqueeze (v, row)  o = MatMul (ku, vu)  n = Add (d, o)  qu = Unsqueeze (q, row)  r = MatMul (qu, n)
            y = Squeeze (r, row) }}> (S0, {", ".join(f"{one}s" for one in given)}) }}"""
    return model_from_text(text, 18)


def _feeds(name: str, sizes: MatrixSizes, seed: int) -> dict[str, np.ndarray]:
    draw, dtype = np.random.default_rng(seed), _DTYPES[sizes.kind]
    shapes = {"S0": (sizes.heads, sizes.keys, sizes.values), "vs": (sizes.steps, sizes.heads, sizes.values)}
    shapes |= dict.fromkeys(("ks", "qs"), (sizes.steps, sizes.heads, sizes.keys))
    feeds = {one: draw.standard_normal(shape).astype(dtype) for one, shape in shapes.items()}
    if name == "a decay of any sign":
        feeds["gs"] = draw.choice(np.array(_OF_ANY_SIGN, dtype), (sizes.steps, sizes.heads))
    elif name in ("a decay by head", "a decay by key"):
        shape = (sizes.steps, sizes.heads, sizes.keys) if name == "a decay by key" else (sizes.steps, sizes.heads)
        feeds["gs"] = (4 + 4 * draw.standard_normal(shape)).astype(dtype)
    return feeds


def _exact(name: str, feeds: Mapping[str, np.ndarray]) -> np.ndarray:
    wider = np.longdouble if feeds["ks"].dtype == np.float64 else np.float64
    wide = {one: value.astype(wider) for one, value in feeds.items()}
    state, rows = wide["S0"], list[np.ndarray]()
    for step in range(len(wide["ks"])):
        key, value, query = (wide[one][step] for one in ("ks", "vs", "qs"))
        decay: np.ndarray = np.full((1, 1, 1), 0.875 if name == "a constant decay" else 1, wider)
        if "gs" in wide:
            gate = wide["gs"][step].reshape(len(key), -1, 1)
            decay = gate if name == "a decay of any sign" else 1 / (1 + np.exp(-gate))
        state = state * decay + key[:, :, None] * value[:, None, :]
        rows.append((query[:, :, None] * state).sum(1))
    return np.array(rows)
