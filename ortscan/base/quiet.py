"""Keeps the log messages of onnx_ir, on steps it takes for ortscan, and numpy's warnings of numbers, from the user's terminal.

They speak of inner values a user neither made nor sees, or of what weights that are infinite or NaN come to. Only records of the
thread at work are dropped, and only while it works; levels, handlers and everyone else's records stay as they are.
"""

import functools
import logging
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["quietly"]

_LOGGERS = (
    "onnx_ir._convenience",
    "onnx_ir.external_data",
    "onnx_ir.passes.common._c_api_utils",
    "onnx_ir.passes.common.inliner",
    "onnx_ir.passes.common.shape_inference",
    "onnx_ir.serde",
)
_P = ParamSpec("_P")
_R = TypeVar("_R")


class _NotFrom(logging.Filter):
    def __init__(self, thread: int):
        super().__init__()
        self._thread = thread

    def filter(self, record: logging.LogRecord) -> bool:
        return threading.get_ident() != self._thread


def quietly(work: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make ``work`` run without onnx_ir's messages and numpy's warnings."""

    @functools.wraps(work)
    def quiet(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        import numpy as np

        silence = _NotFrom(threading.get_ident())
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(silence)
        try:
            with np.errstate(all="ignore"):
                return work(*args, **kwargs)
        finally:
            for name in _LOGGERS:
                logging.getLogger(name).removeFilter(silence)

    return quiet
