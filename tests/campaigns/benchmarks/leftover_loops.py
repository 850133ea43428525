"""Loops that no rewrite takes out, to time them as plans: ``python -m tests.campaigns benchmarks.leftover_loops``.

For each: the original, what ``optimize`` makes of it, and what it makes of it with ``native``, in one process, interleaved, with one
thread: the best of many short rounds in microseconds of the thread's own time, and ratios. An argument is the number of steps (200),
one more a word that names of loops hold. At last the geometric means of those that are there in several widths.
"""

import sys
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import onnx

import ortscan
from tests.campaigns.benchmarks.timing import best_of, session_of
from tests.support.text import model_from_text

__all__ = ["Leftover", "leftover_loops", "main"]

Leftover = tuple[str, onnx.ModelProto, dict[str, np.ndarray]]

_ROUNDS, _SECONDS = 40, 0.006
_WIDTHS = (1, 16, 64, 256, 1024)


def leftover_loops(steps: int = 200) -> Iterator[Leftover]:
    """Yield a name, a model and feeds of each loop."""
    rng = np.random.default_rng(0)

    def loop(
        name: str, body: str, states: dict[str, str], scans: dict[str, tuple[int, ...]], outputs: dict[str, str], **weights: Any
    ) -> Leftover:
        return _loop(
            name, body, states, scans, outputs, {key: np.asarray(value, np.float32) for key, value in weights.items()}, rng, steps
        )

    def w(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape) / np.sqrt(shape[0])

    for batch, h in ((1, 64), (8, 128)):
        norm = "LayerNormalization <axis = -1>"
        body = f"""
          hu = MatMul (h, U) hn = {norm} (hu, gain) xg = Add (x, hn) i, f, o, g = Split <axis = -1, num_outputs = 4> (xg)
          si = Sigmoid (i) sf = Sigmoid (f) so = Sigmoid (o) tg = Tanh (g) fc = Mul (sf, c) ig = Mul (si, tg) c2 = Add (fc, ig)
          cn = {norm} (c2, gain_c) tc = Tanh (cn) h2 = Mul (so, tc) y = Identity (h2) """
        yield loop(
            f"LayerNorm-LSTM B={batch} H={h}",
            body,
            {"h": f"{batch},{h}", "c": f"{batch},{h}"},
            {"x": (batch, 4 * h)},
            {"y": f"{batch},{h}"},
            U=w(h, 4 * h),
            gain=np.full(4 * h, 0.3),
            gain_c=np.ones(h),
        )
    h = 64
    body = """
      hr = MatMul (h, R) g = Add (x, hr) i, f, z, o = Split <axis = -1, num_outputs = 4> (g) fm = Add (f, m) m2 = Max (fm, i)
      im = Sub (i, m2) ei = Exp (im) fm2 = Sub (fm, m2) ef = Exp (fm2) tz = Tanh (z) so = Sigmoid (o) fc = Mul (ef, c) iz = Mul (ei, tz)
      c2 = Add (fc, iz) fn = Mul (ef, n) n2 = Add (fn, ei) cn = Div (c2, n2) h2 = Mul (so, cn) y = Identity (h2) """
    yield loop(
        "sLSTM H=64",
        body,
        {"h": f"1,{h}", "c": f"1,{h}", "n": f"1,{h}", "m": f"1,{h}"},
        {"x": (1, 4 * h)},
        {"y": f"1,{h}"},
        R=w(h, 4 * h),
    )
    body = """
      d2 = Unsqueeze (d, last) da = Mul (d2, A) ea = Exp (da) hs = Mul (ea, h) dx = Mul (d, x) dx2 = Unsqueeze (dx, last)
      b2 = Unsqueeze (b, first) u = Mul (dx2, b2) h2 = Add (hs, u) c2 = Unsqueeze (c, first) hc = Mul (h2, c2) y = ReduceSum <keepdims = 0> (hc, last) """
    yield loop(
        "Mamba D=128 N=16",
        body,
        {"h": "128,16"},
        {"x": (128,), "d": (128,), "b": (16,), "c": (16,)},
        {"y": "128"},
        A=-np.abs(w(128, 16)),
        last=[1],
        first=[0],
    )
    body = "nz = Sub (one, z) hz = Mul (nz, h) zx = Mul (z, x) h2 = Add (hz, zx) y = Identity (h2)"
    yield loop("minGRU H=256", body, {"h": "1,256"}, {"x": (1, 256), "z": (1, 256)}, {"y": "1,256"}, one=1.0)
    body = """
      vd = Mul (v, decay) v1 = Add (vd, x) fires = Greater (v1, threshold) s = Cast <to = 1> (fires) reset = Mul (s, threshold)
      v2 = Sub (v1, reset) y = Identity (s) """
    yield loop("LIF N=256", body, {"v": "1,256"}, {"x": (1, 256)}, {"y": "1,256"}, decay=0.9, threshold=0.5)
    body = """
      Ps = MatMul (F, P) Ft = Transpose <perm = [1, 0]> (F) Pf = MatMul (Ps, Ft) Pq = Add (Pf, Q) Ht = Transpose <perm = [1, 0]> (H)
      PH = MatMul (Pq, Ht) S0 = MatMul (H, PH) S = Add (S0, R) K = Div (PH, S) xp = MatMul (F, x) Hx = MatMul (H, xp) e = Sub (z, Hx)
      Ke = MatMul (K, e) x2 = Add (xp, Ke) KH = MatMul (K, H) I_KH = Sub (I, KH) P2 = MatMul (I_KH, Pq) y = Identity (x2) """
    yield loop(
        "Kalman 4 states",
        body,
        {"x": "4,1", "P": "4,4"},
        {"z": (1, 1)},
        {"y": "4,1"},
        F=np.eye(4) + 0.1 * np.eye(4, k=1),
        H=np.eye(1, 4),
        Q=0.01 * np.eye(4),
        R=[[0.1]],
        I=np.eye(4),
    )
    for name, body in (
        ("linear recurrence", "ah = Mul (a, h) h2 = Add (ah, x) y = Identity (h2)"),
        (
            "cumulative logsumexp",
            "m = Max (h, x) hm = Sub (h, m) xm = Sub (x, m) eh = Exp (hm) ex = Exp (xm) s = Add (eh, ex) l = Log (s) h2 = Add (m, l) y = Identity (h2)",
        ),
        ("cumulative maximum", "h2 = Max (h, x) y = Identity (h2)"),
    ):
        for size in _WIDTHS:
            scans = {"x": (size,), **({"a": (size,)} if "ah" in body else {})}
            yield loop(f"{name} {size}", body, {"h": f"{size}"}, scans, {"y": f"{size}"})
    body = """
      q = MatMul (h, Wq) s = MatMul (q, Kt) p = Softmax <axis = -1> (s) ctx = MatMul (p, V) hx = Concat <axis = -1> (ctx, x)
      g = MatMul (hx, W) h2 = Tanh (g) y = Identity (h2) """
    yield loop(
        "attention decoder H=64 L=50",
        body,
        {"h": "1,64"},
        {"x": (1, 64)},
        {"y": "1,64"},
        Wq=w(64, 64),
        Kt=w(64, 50),
        V=w(50, 64),
        W=w(128, 64),
    )
    body = """
      n2 = Add (n, one) d = Sub (x, mean) dn = Div (d, n2) mean2 = Add (mean, dn) d2 = Sub (x, mean2) dd = Mul (d, d2) M2 = Add (M, dd)
      y = Div (M2, n2) """
    yield loop("Welford 16", body, {"n": "1", "mean": "16", "M": "16"}, {"x": (16,)}, {"y": "16"}, one=1.0)
    body = """
      bx = Mul (b0, x) o = Add (bx, s1) b1x = Mul (b1, x) a1o = Mul (a1, o) t = Sub (b1x, a1o) s1n = Add (t, s2) b2x = Mul (b2, x)
      a2o = Mul (a2, o) s2n = Sub (b2x, a2o) y = Identity (o) """
    yield loop("biquad 8 channels", body, {"s1": "8", "s2": "8"}, {"x": (8,)}, {"y": "8"}, b0=0.2, b1=0.4, b2=0.2, a1=-0.5, a2=0.3)


def _loop(
    name: str,
    body: str,
    states: dict[str, str],
    scans: dict[str, tuple[int, ...]],
    outputs: dict[str, str],
    weights: dict[str, np.ndarray],
    rng: np.random.Generator,
    steps: int,
) -> Leftover:
    """Each state ``s`` is given as ``s_0``, and has its next value in ``s2``, ``s_next`` or what the body computes last of it."""
    following = {state: next(one for one in (f"{state}2", f"{state}n", state) if f"{one} =" in body) for state in states}
    inputs = [
        *(f"float[{dims}] {state}" for state, dims in states.items()),
        *(f"float[{','.join(map(str, d))}] {n}" for n, d in scans.items()),
    ]
    results = [
        *(f"float[{dims}] {following[state]}" for state, dims in states.items()),
        *(f"float[{d}] {n}" for n, d in outputs.items()),
    ]
    given = [
        *(f"float[{dims}] {state}_0" for state, dims in states.items()),
        *(f"float[T,{','.join(map(str, d))}] {n}s" for n, d in scans.items()),
    ]
    stacked = ", ".join([*(f"{state}_T" for state in states), *(f"{n}s_" for n in outputs)])
    text = f"""
      g ({", ".join(given)}) => ({", ".join(f"float[T,{d}] {n}s_" for n, d in outputs.items())}) {{
        {stacked} = Scan <num_scan_inputs = {len(scans)}, body = b ({", ".join(inputs)}) => ({", ".join(results)}) {{ {body} }}>
          ({", ".join([*(f"{state}_0" for state in states), *(f"{n}s" for n in scans)])}) }}"""
    typed = {key: array.astype(np.int64 if key in ("last", "first") else np.float32) for key, array in weights.items()}
    model = model_from_text(text, weights=typed)
    feeds = {f"{state}_0": (rng.standard_normal(_dims(dims)) / 4).astype(np.float32) for state, dims in states.items()}
    feeds |= {f"{n}s": (rng.standard_normal((steps, *dims)) / 4).astype(np.float32) for n, dims in scans.items()}
    return name, model, feeds


def _dims(text: str) -> tuple[int, ...]:
    return tuple(int(dim) for dim in text.split(","))


def main() -> None:
    steps, word = (*sys.argv[1:3], *("200", "")[len(sys.argv) - 1 :])
    ratios = dict[str, tuple[float, float]]()
    for name, model, feeds in leftover_loops(int(steps)):
        if word not in name:
            continue
        sessions = [
            session_of(model),
            session_of(ortscan.optimize(model, verify=False)),
            session_of(ortscan.optimize(model, native=True, verify=False), library=True),
        ]
        results = [session.run(None, feeds) for session in sessions]
        worst = max(float(np.abs(a - b).max()) for a, b in zip(results[0], results[2], strict=True))
        runs = [partial(session.run, None, feeds) for session in sessions]
        best = best_of(runs, _ROUNDS, _SECONDS)
        ratios[name] = best[0] / best[2], best[1] / best[2]
        times = "  ".join(f"{1e6 * one:9.1f}" for one in best)
        print(f"{name:28} {times}   {_said(*ratios[name])}   worst {worst:.1e}", flush=True)
    families = groupby(ratios, lambda name: name.rstrip(" 0123456789"))
    for family, names in [(family, list(names)) for family, names in families] + [("all", list(ratios))]:
        if len(names) > 1:
            mean = np.exp(np.mean(np.log([ratios[name] for name in names]), axis=0))
            print(f"{family:28} geometric means of {len(names)}   {_said(*mean)}")


def _said(of_original: float, of_optimised: float) -> str:
    return f"original/native {of_original:6.1f}   optimised/native {of_optimised:6.1f}"


if __name__ == "__main__":
    main()
