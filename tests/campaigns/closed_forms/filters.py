"""Kalman filters whose covariance starts as a constant, against what they compute in double, and near misses."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx

import ortscan
from tests.campaigns.closed_forms.checking import compared, has_loop
from tests.support.runtime import ort_session, run_session
from tests.support.text import model_from_text

__all__ = ["FILTERS", "FILTER_MISSES", "FilterSizes", "check_filter", "check_filter_miss"]

_COVARIANCE = "FP = MatMul (F, P) Ft = Transpose <perm = [1, 0]> (F) FPF = MatMul (FP, Ft) Pp = Add (FPF, Q)"
_GAIN = "Ht = Transpose <perm = [1, 0]> (H) PH = MatMul (Pp, Ht) HPH = MatMul (H, PH) S = Add (HPH, R) K = Div (PH, S)"
_UPDATE = "xp = MatMul (F, x) Hx = MatMul (H, xp) e = Sub (z, Hx) Ke = MatMul (K, e) x1 = Add (xp, Ke)"
_AFTER = "KH = MatMul (K, H) J = Sub (I, KH) P1 = MatMul (J, Pp) y = Identity (x1)"
FILTERS: Mapping[str, int] = {"a filter of one number": 1, "a filter of two": 2, "a filter of four": 4, "a filter of twelve": 12}
"""Filters, and the numbers of their states."""
FILTER_MISSES: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "a transition that is an input": ("", "", ("F",)),
    "an observation that is an input": ("", "", ("H",)),
    "a covariance that is an input": ("", "", ("P0",)),
    "noise that measurements decide": ("Pp = Add (FPF, Q)", "zz = Mul (z, z) Qz = Mul (Q, zz) Pp = Add (FPF, Qz)", ()),
    "a bent state": ("x1 = Add (xp, Ke)", "xk = Add (xp, Ke) x1 = Tanh (xk)", ()),
    "a gain that the state decides": (
        "Ke = MatMul (K, e)",
        "ea = Abs (e) eb = Add (ea, R) Kz = Div (K, eb) Ke = MatMul (Kz, e)",
        (),
    ),
}
"""What looks like such a filter and must stay a loop: a part of the body, its replacement, and the constants that become inputs."""


@dataclass(frozen=True)
class FilterSizes:
    """How many steps, states, and of which type; ``backwards``: whether the loop starts at the last measurement."""

    steps: int
    states: int
    kind: str = "float"
    backwards: bool = False


def check_filter(sizes: FilterSizes, seed: int) -> str:
    """Return what is wrong: a loop, errors that grow more than 4 times as fast as the loop's own, or nothing."""
    before, after, feeds = _optimized(sizes, _body(), (), seed)
    if has_loop(after) and sizes.steps > 16:
        return "the loop is still there"
    loops, mine = (run_session(ort_session(model), feeds) for model in (before, after))
    return compared(_exact(sizes, feeds), loops, mine)


def check_filter_miss(name: str, sizes: FilterSizes, seed: int) -> str:
    """Return what is wrong: the loop is gone, or numbers differ; or nothing."""
    part, replacement, inputs = FILTER_MISSES[name]
    before, after, feeds = _optimized(sizes, _body().replace(part, replacement) if part else _body(), inputs, seed)
    if not has_loop(after):
        return "the loop is gone"
    loops, mine = (run_session(ort_session(model), feeds) for model in (before, after))
    return compared([value.astype(np.float64) for value in loops], loops, mine)


def _body() -> str:
    return " ".join((_COVARIANCE, _GAIN, _UPDATE, _AFTER))


def _optimized(
    sizes: FilterSizes, body: str, inputs: tuple[str, ...], seed: int
) -> tuple[onnx.ModelProto, onnx.ModelProto, dict[str, np.ndarray]]:
    kind, steps, states = sizes.kind, sizes.steps, sizes.states
    draw, dtype = np.random.default_rng(seed), np.dtype(kind.replace("float", "float32").replace("double", "float64"))
    weights = {name: value.astype(dtype) for name, value in _weights(states).items()}
    given = "".join(f", {kind}[{','.join(map(str, weights[name].shape))}] {name}" for name in inputs)
    constants = ", ".join(
        f"{kind}[{','.join(map(str, value.shape))}] {name} = {{{', '.join(map(str, value.ravel().tolist()))}}}"
        for name, value in weights.items()
        if name not in inputs
    )
    direction = int(sizes.backwards)
    text = f"""g ({kind}[{states},1] x0, {kind}[{steps},1,1] zs{given}) => ({kind}[{states},1] f, {kind}[{steps},{states},1] ys)
        <{constants}> {{
        f, PT, ys = Scan <num_scan_inputs = 1, scan_input_directions = [{direction}], scan_output_directions = [{direction}],
            body = b ({kind}[{states},1] x, {kind}[{states},{states}] P, {kind}[1,1] z)
            => ({kind}[{states},1] x1, {kind}[{states},{states}] P1, {kind}[{states},1] y) {{ {body} }}> (x0, P0, zs) }}"""
    model = model_from_text(text, 18)
    feeds = {"x0": draw.standard_normal((states, 1)).astype(dtype), "zs": draw.standard_normal((steps, 1, 1)).astype(dtype)}
    feeds |= {name: weights[name] for name in inputs}
    return model, ortscan.optimize(model, verify=False), feeds


def _weights(states: int) -> dict[str, np.ndarray]:
    eye = np.eye(states)
    observed, noise = np.eye(1, states), np.full((1, 1), 0.1)
    return {"F": 0.95 * eye + 0.1 * np.eye(states, k=1), "H": observed, "Q": 0.01 * eye, "R": noise, "I": eye, "P0": eye}


def _exact(sizes: FilterSizes, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    wider = np.longdouble if sizes.kind == "double" else np.float64
    dtype = feeds["zs"].dtype
    transition, observed, process, noise, eye, covariance = (
        value.astype(dtype).astype(wider) for value in _weights(sizes.states).values()
    )
    state, rows = feeds["x0"].astype(wider), list[np.ndarray]()
    measured = feeds["zs"].astype(wider)
    for measurement in measured[::-1] if sizes.backwards else measured:
        predicted = transition @ covariance @ transition.T + process
        gain = predicted @ observed.T / (observed @ predicted @ observed.T + noise)
        state = transition @ state
        state = state + gain @ (measurement - observed @ state)
        covariance = (eye - gain @ observed) @ predicted
        rows.append(state)
    return [state, np.array(rows[::-1] if sizes.backwards else rows)]
