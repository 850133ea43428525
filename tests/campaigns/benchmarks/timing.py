"""Sessions of one thread, and how long a run of them takes."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import onnx
import onnxruntime as ort

from ortscan.native.library import register_library

__all__ = ["best_ms", "best_of", "mean_seconds", "session_of"]


def session_of(model: onnx.ModelProto, *, library: bool = False) -> ort.InferenceSession:
    """Return a session on the CPU with one thread, with ortscan's library or without."""
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    if library:
        register_library(options)
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def mean_seconds(work: Callable[[], object], at_least: float, clock: Callable[[], float] = time.thread_time) -> float:
    """Return the mean time of as many runs of ``work``, one or more, as take ``at_least`` seconds of ``clock``."""
    runs, started = 0, clock()
    while (spent := clock() - started) < at_least or not runs:
        work()
        runs += 1
    return spent / runs


def best_of(
    works: Sequence[Callable[[], object]], rounds: int, at_least: float = 0.0, clock: Callable[[], float] = time.thread_time
) -> list[float]:
    """Return the best mean time of each work, in seconds, over rounds in turn."""
    times = ([mean_seconds(work, at_least, clock) for work in works] for _ in range(rounds))
    return [min(column) for column in zip(*times, strict=True)]


def best_ms(models: Sequence[onnx.ModelProto], feeds: dict[str, Any]) -> list[float]:
    """Return the best time of a run of each model, in milliseconds, over 33 runs in turn."""
    runs = [partial(session_of(model).run, None, feeds) for model in models]
    return [1e3 * seconds for seconds in best_of(runs, 33, clock=time.perf_counter)]
