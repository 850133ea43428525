"""Elementwise recurrences as plans, against numba's compiled loops: ``python -m tests.campaigns benchmarks.against_numba``, where numba is.

The goal is what numba takes for a loop written out by hand, and a run of a model that copies the results, which a model does
anyhow. One thread, the thread's own time, best of many short rounds, interleaved. An argument is the number of steps (1000).
"""

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

import ortscan
from tests.campaigns.benchmarks.leftover_loops import leftover_loops
from tests.campaigns.benchmarks.timing import best_of, session_of
from tests.support.text import model_from_text

__all__ = ["main"]

_ROUNDS, _SECONDS = 60, 0.004


def linear_recurrence(h: Any, xs: Any, a: Any, ys: Any) -> None:
    for t in range(xs.shape[0]):
        for j in range(xs.shape[1]):
            h[j] = a[t, j] * h[j] + xs[t, j]
            ys[t, j] = h[j]


def cumulative_maximum(h: Any, xs: Any, ys: Any) -> None:
    for t in range(xs.shape[0]):
        for j in range(xs.shape[1]):
            h[j] = max(h[j], xs[t, j])
            ys[t, j] = h[j]


def min_gru(h: Any, xs: Any, z: Any, ys: Any) -> None:
    for t in range(xs.shape[0]):
        for j in range(xs.shape[2]):
            h[0, j] = (np.float32(1) - z[t, 0, j]) * h[0, j] + z[t, 0, j] * xs[t, 0, j]
            ys[t, 0, j] = h[0, j]


def lif(v: Any, xs: Any, ys: Any) -> None:
    for t in range(xs.shape[0]):
        for j in range(xs.shape[2]):
            u = v[0, j] * np.float32(0.9) + xs[t, 0, j]
            s = np.float32(1) if u > np.float32(0.5) else np.float32(0)
            v[0, j] = u - s * np.float32(0.5)
            ys[t, 0, j] = s


def welford(n: Any, mean: Any, m2: Any, xs: Any, ys: Any) -> None:
    for t in range(xs.shape[0]):
        n[0] += np.float32(1)
        for j in range(xs.shape[1]):
            d = xs[t, j] - mean[j]
            mean[j] += d / n[0]
            m2[j] += d * (xs[t, j] - mean[j])
            ys[t, j] = m2[j] / n[0]


def biquad(s1: Any, s2: Any, xs: Any, ys: Any) -> None:
    for t in range(xs.shape[0]):
        for j in range(xs.shape[1]):
            o = np.float32(0.2) * xs[t, j] + s1[j]
            s1[j] = (np.float32(0.4) * xs[t, j] - np.float32(-0.5) * o) + s2[j]
            s2[j] = np.float32(0.2) * xs[t, j] - np.float32(0.3) * o
            ys[t, j] = o


_BY_HAND: dict[str, Callable[..., None]] = {
    "minGRU H=256": min_gru,
    "LIF N=256": lif,
    "linear recurrence 256": linear_recurrence,
    "cumulative maximum 256": cumulative_maximum,
    "Welford 16": welford,
    "biquad 8 channels": biquad,
}


def main() -> None:
    try:
        numba = importlib.import_module("numba")
    except ImportError:
        print("numba is not installed")
        return
    ratios = [
        _timed(numba.njit(_BY_HAND[name]), name, model, feeds)
        for name, model, feeds in leftover_loops(*map(int, sys.argv[1:2] or ["1000"]))
        if name in _BY_HAND
    ]
    print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, worst {max(ratios):.2f}")


def _timed(compiled: Callable[..., None], name: str, model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> float:
    """Print how long both take, and return the ratio."""
    optimised = ortscan.optimize(model, native=True, verify=False)
    assert isinstance(optimised, onnx.ModelProto)
    native = session_of(optimised, library=True)
    results = native.run(None, feeds)
    shape = ",".join(map(str, results[-1].shape))
    copying = model_from_text(f"g (float[{shape}] x) => (float[{shape}] y) {{ y = Identity (x) }}", 18)
    copy = session_of(copying)
    ys = np.empty_like(results[-1])
    states = sum(not key.endswith("s") for key in feeds)

    def by_hand() -> None:
        compiled(*(each.copy() if index < states else each for index, each in enumerate(feeds.values())), ys)

    by_hand()
    np.testing.assert_allclose(ys, results[-1], rtol=1e-4, atol=1e-5)
    timed = [lambda: native.run(None, feeds), by_hand, lambda: copy.run(None, {"x": ys})]
    ours, loop, moved = best_of(timed, _ROUNDS, _SECONDS)
    ratio: float = ours / (loop + moved)
    print(
        f"{name:26} plan {1e6 * ours:8.1f} µs   numba {1e6 * loop:8.1f}   copy {1e6 * moved:6.1f}   plan / both {ratio:5.2f}",
        flush=True,
    )
    return ratio


if __name__ == "__main__":
    main()
