"""RNN, GRU and LSTM as the ONNX specification defines them: one row, one direction, one step at a time, in float64.

The specification leaves two points open. Lists of parameters are compact, as in onnxruntime: each activation that has an alpha
takes the next one. A clip bounds the arguments of the gates' activations, not the cell, which is the argument of the last
activation of an LSTM.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["GATES", "recurrent"]

Array = np.ndarray
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_NAMES = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}

# name: (default alpha, default beta, function of x, alpha, beta); None for a parameter it does not have
_ACTIVATIONS: Mapping[str, tuple[float | None, float | None, Callable[[Array, Any, Any], Array]]] = {
    "relu": (None, None, lambda x, a, b: np.maximum(0, x)),
    "tanh": (None, None, lambda x, a, b: np.tanh(x)),
    "sigmoid": (None, None, lambda x, a, b: 1 / (1 + np.exp(-x))),
    "affine": (1.0, 0.0, lambda x, a, b: a * x + b),
    "leakyrelu": (0.01, None, lambda x, a, b: np.where(x >= 0, x, a * x)),
    "thresholdedrelu": (1.0, None, lambda x, a, b: np.where(x >= a, x, 0)),
    "scaledtanh": (1.0, 1.0, lambda x, a, b: a * np.tanh(b * x)),
    "hardsigmoid": (0.2, 0.5, lambda x, a, b: np.minimum(np.maximum(a * x + b, 0), 1)),
    "elu": (1.0, None, lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0)))),
    "softsign": (None, None, lambda x, a, b: x / (1 + np.abs(x))),
    "softplus": (None, None, lambda x, a, b: np.logaddexp(0, x)),
}


def recurrent(
    kind: str,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    initial_h: Array | None = None,
    initial_c: Array | None = None,
    p: Array | None = None,
    *,
    direction: str = "forward",
    layout: int = 0,
    clip: float = 0.0,
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    input_forget: int = 0,
    linear_before_reset: int = 0,
    hidden_size: int | None = None,
) -> list[Array]:
    """Return Y, Y_h and for an LSTM Y_c, in the requested layout. A clip of 0 or less is ignored."""
    wide = [None if a is None else np.asarray(a, np.float64) for a in (x, w, r, b, initial_h, initial_c, p)]
    x, w, r, b, initial_h, initial_c, p = wide  # type: ignore[assignment]
    if layout:
        x, initial_h, initial_c = (None if a is None else np.swapaxes(a, 0, 1) for a in (x, initial_h, initial_c))  # type: ignore[assignment]
    steps, rows, _ = x.shape
    ways = {"forward": [1], "reverse": [-1], "bidirectional": [1, -1]}[direction]
    size = r.shape[2]
    assert hidden_size in (None, size)
    functions = _functions(activations or _NAMES[kind] * len(ways), activation_alpha, activation_beta, clip)
    per_way = len(_NAMES[kind])
    y = np.zeros((steps, len(ways), rows, size))
    h = np.zeros((len(ways), rows, size)) if initial_h is None else initial_h.copy()
    c = np.zeros((len(ways), rows, size)) if initial_c is None else initial_c.copy()
    for d, way in enumerate(ways):
        bias = np.zeros(2 * GATES[kind] * size) if b is None else b[d]
        peepholes = np.zeros(3 * size) if p is None else p[d]
        f = functions[d * per_way : (d + 1) * per_way]
        for row in range(rows):
            length = steps if lengths is None else int(np.ravel(lengths)[row])
            for t in range(length)[::way]:
                args = (x[t, row], h[d, row], w[d], r[d], np.split(bias, 2), f)
                if kind == "RNN":
                    h[d, row] = _rnn(*args)
                elif kind == "GRU":
                    h[d, row] = _gru(*args, linear_before_reset)
                else:
                    h[d, row], c[d, row] = _lstm(*args, c[d, row], peepholes, input_forget)
                y[t, d, row] = h[d, row]
    results = [y, h] + ([c] if kind == "LSTM" else [])
    return [np.moveaxis(a, -2, 0) for a in results] if layout else results


def _functions(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float], clip: float
) -> list[tuple[Callable[[Array], Array], Callable[[Array], Array]]]:
    """Return each activation with its parameters in two forms: with clipped and with unclipped arguments."""
    alpha, beta = iter(alphas), iter(betas)
    results = []
    for name in names:
        default_alpha, default_beta, function = _ACTIVATIONS[name.lower()]
        mine = _take(alpha, default_alpha), _take(beta, default_beta)

        def plain(v: Array, function=function, mine=mine) -> Array:
            return function(v, *mine)

        def bounded(v: Array, plain=plain) -> Array:
            return plain(np.clip(v, -clip, clip) if clip > 0 else v)

        results.append((bounded, plain))
    return results


def _take(given: Iterator[float], default: float | None) -> float | None:
    return None if default is None else next(given, default)


def _rnn(x, h, w, r, bias, f):
    return f[0][0](x @ w.T + h @ r.T + bias[0] + bias[1])


def _gru(x, h, w, r, bias, f, linear_before_reset):
    (wz, wr, wh), (rz, rr, rh) = np.split(w, 3), np.split(r, 3)
    (wbz, wbr, wbh), (rbz, rbr, rbh) = np.split(bias[0], 3), np.split(bias[1], 3)
    zt = f[0][0](x @ wz.T + h @ rz.T + wbz + rbz)
    rt = f[0][0](x @ wr.T + h @ rr.T + wbr + rbr)
    if linear_before_reset:
        ht = f[1][0](x @ wh.T + rt * (h @ rh.T + rbh) + wbh)
    else:
        ht = f[1][0](x @ wh.T + (rt * h) @ rh.T + rbh + wbh)
    return (1 - zt) * ht + zt * h


def _lstm(x, h, w, r, bias, f, c, peepholes, input_forget):
    (wi, wo, wf, wc), (ri, ro, rf, rc) = np.split(w, 4), np.split(r, 4)
    (wbi, wbo, wbf, wbc), (rbi, rbo, rbf, rbc) = np.split(bias[0], 4), np.split(bias[1], 4)
    pi, po, pf = np.split(peepholes, 3)
    it = f[0][0](x @ wi.T + h @ ri.T + pi * c + wbi + rbi)
    ft = 1 - it if input_forget else f[0][0](x @ wf.T + h @ rf.T + pf * c + wbf + rbf)
    ct = f[1][0](x @ wc.T + h @ rc.T + wbc + rbc)
    after = ft * c + it * ct
    ot = f[0][0](x @ wo.T + h @ ro.T + po * after + wbo + rbo)
    return ot * f[2][1](after), after
