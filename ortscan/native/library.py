"""Find the native library, which runs loop plans, and register it on session options."""

import functools
import os
import sys
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from ortscan.base.forks import ForkSafeLock
from ortscan.native.building import LIBRARIES

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["library_path", "register_library", "why_not"]

_lock = ForkSafeLock()
_registered: "weakref.WeakSet[ort.SessionOptions]" = weakref.WeakSet()


def library_path() -> Path | None:
    """Return the path of the library, or None if it is not installed or ``ORTSCAN_NATIVE=0`` is set."""
    return None if os.environ.get("ORTSCAN_NATIVE") == "0" else _built()


def why_not() -> str | None:
    """Return the reason why the library is unavailable, or None if it is available."""
    if os.environ.get("ORTSCAN_NATIVE") == "0":
        return "the environment variable ORTSCAN_NATIVE is 0."
    return None if _built() is not None else "this ortscan was installed without a compiler (ziglang or clang)."


def register_library(options: "ort.SessionOptions | None") -> bool:
    """Register the library on ``options``, unless it is registered there already.

    Return False if the library is unavailable or ``options`` is None, else True.
    """
    path = library_path()
    if path is None or options is None:
        return False
    with _lock:
        if options not in _registered:
            options.register_custom_ops_library(str(path))
            _registered.add(options)
    return True


@functools.cache
def _built() -> Path | None:
    path = Path(__file__).with_name(LIBRARIES.get(sys.platform, LIBRARIES["linux"]))
    return path if path.is_file() else None
