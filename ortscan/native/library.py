"""Where the library of loop plans is, and how session options get to know it."""

import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["library_path", "register_library", "why_not"]

_NAMES = {"win32": "ortscan.dll", "darwin": "libortscan.dylib"}


def library_path() -> Path | None:
    """Return the library that this installation of ortscan brings, or None; ``ORTSCAN_NATIVE=0`` in the environment hides it."""
    return None if os.environ.get("ORTSCAN_NATIVE") == "0" else _built()


def why_not() -> str | None:
    """Return why there is no library, in one sentence; None where there is one."""
    if os.environ.get("ORTSCAN_NATIVE") == "0":
        return "the environment variable ORTSCAN_NATIVE is 0."
    return None if _built() is not None else "this ortscan was installed where no compiler was to be had (ziglang, or clang)."


def register_library(options: "ort.SessionOptions") -> bool:
    """Make loop plans known to sessions made with ``options``; return whether there is a library."""
    path = library_path()
    if path is not None:
        options.register_custom_ops_library(str(path))
    return path is not None


@functools.cache
def _built() -> Path | None:
    path = Path(__file__).with_name(_NAMES.get(sys.platform, "libortscan.so"))
    return path if path.is_file() else None
