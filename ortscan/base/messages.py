"""Suppress unhelpful messages of onnx_ir and numpy, and issue warnings at the line of the caller.

onnx_ir logs internal values that the user never sees, and numpy warns of infinite weights. ``quietly`` drops the log records of
onnx_ir, but only in the thread that runs the wrapped function, and only while the function runs. The levels and handlers of
loggers stay as they are.
"""

import functools
import logging
import sys
import threading
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ortscan.errors import OrtscanWarning

__all__ = ["quietly", "warn"]

_LOGGERS = (
    "onnx_ir._convenience",
    "onnx_ir.external_data",
    "onnx_ir.passes.common._c_api_utils",
    "onnx_ir.passes.common.inliner",
    "onnx_ir.passes.common.shape_inference",
    "onnx_ir.serde",
)
_OURS = ("ortscan", "rewrites", "onnxruntime")
"""Packages whose frames are skipped. onnxruntime is included because its session class calls sessions of ortscan."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _NotFrom(logging.Filter):
    def __init__(self, thread: int):
        super().__init__()
        self._thread = thread

    def filter(self, record: logging.LogRecord) -> bool:
        return threading.get_ident() != self._thread


def quietly(work: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return ``work`` as a function that runs without onnx_ir's messages and numpy's warnings."""

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


def warn(text: str) -> None:
    """Issue an OrtscanWarning that names the line of the caller.

    The caller is the innermost frame outside ortscan and onnxruntime.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, OrtscanWarning, stacklevel=level)
