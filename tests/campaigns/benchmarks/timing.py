"""Sessions of one thread, and how long a run of them takes."""

import time
from collections.abc import Callable

import onnx
import onnxruntime as ort

from ortscan.native.library import register_library

__all__ = ["mean_seconds", "session_of"]


def session_of(model: onnx.ModelProto, *, library: bool = False) -> ort.InferenceSession:
    """Return a session on the CPU with one thread, with ortscan's library or without."""
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    if library:
        register_library(options)
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def mean_seconds(work: Callable[[], object], at_least: float, clock: Callable[[], float] = time.thread_time) -> float:
    """Return the mean time of so many runs of ``work``, one at the least, that they take ``at_least`` seconds of ``clock``."""
    runs, started = 0, clock()
    while (spent := clock() - started) < at_least or not runs:
        work()
        runs += 1
    return spent / runs
