"""Models that call Python because onnxruntime lacks a kernel for one of their nodes, and runners that fail in such calls."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

import ortscan
from ortscan.custom_ops import calls
from tests.support.text import parsed

__all__ = ["IN_A_SCAN", "ONE", "WORDS", "behaving", "erf_model", "options", "session", "survives"]

ONE = '<ir_version: 8, opset_import: ["": 18]> g (double[N] a) => (double[N] y) { y = Erf (a) }'
WORDS = """
<ir_version: 8, opset_import: ["": 18]> g (uint64[N] a, uint64[M] b, bool c) => (uint64[K] y, uint64[L] z) {
  y = Where (c, a, a) z = Where (c, b, b)
}
"""
IN_A_SCAN = """
<ir_version: 8, opset_import: ["": 18]> g (double[2] h, double[T, 2] x) => (double[2] last, double[T, 2] ys) {
  last, ys = Scan <num_scan_inputs = 1, body = b (double[2] s, double[2] xt) => (double[2] n, double[2] y) {
    m = Erf (s) n = Add (m, xt) y = Identity (n)
  }> (h, x)
}
"""


def erf_model(scale: float = 1.0) -> onnx.ModelProto:
    """Return one of many different models."""
    text = f"g (double[N] a) => (double[N] y) <double s = {{{scale}}}> {{ t = Mul (a, s) y = Erf (t) }}"
    return parsed(text, ir_version=8)


def options(**entries: str) -> ort.SessionOptions:
    """Return options that allow calls of Python and compare nothing, because a comparison takes longer than all runs of a test."""
    made = ort.SessionOptions()
    made.intra_op_num_threads = 1
    made.log_severity_level = 4
    for name, text in {"custom_ops": "1", "verify": "0", **entries}.items():
        made.add_session_config_entry(f"ortscan.{name}", text)
    return made


def session(model: str | onnx.ModelProto = ONE, **entries: str) -> ortscan.InferenceSession:
    return ortscan.InferenceSession(parsed(model) if isinstance(model, str) else model, options(**entries))


@contextmanager
def behaving(run: Callable[[Sequence[np.ndarray]], Any]) -> Iterator[None]:
    """Replace the runner of every call by ``run`` in this context."""
    known, calls._runner_of = calls._runner_of, lambda spec: run
    calls._prepared.cache_clear()
    try:
        yield
    finally:
        calls._runner_of = known
        calls._prepared.cache_clear()


_PRELUDE = """
import os, signal, sys, threading, time
import numpy as np, onnxruntime as ort
import ortscan
from tests.support.python_calls import *
A = np.array([0.5, 1.0])
"""


def survives(code: str, seconds: float = 60) -> str:
    """Run ``code`` in a subprocess, which must exit with 0 and without a message about an abort. Return its output."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-X", "faulthandler", "-c", _PRELUDE + code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=seconds, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr[-4000:]}"
    return done.stdout
