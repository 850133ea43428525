"""Warns the caller: the warning names the line that called ortscan, however deep inside it was found."""

import sys
import warnings

from ortscan.errors import OrtscanWarning

__all__ = ["warn"]

_OURS = ("ortscan", "rewrites", "onnxruntime")
"""onnxruntime's own class calls sessions of ortscan."""


def warn(text: str) -> None:
    """Issue an OrtscanWarning at the innermost frame that is neither ortscan's nor onnxruntime's."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, OrtscanWarning, stacklevel=level)
