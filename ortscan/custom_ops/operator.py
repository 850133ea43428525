"""Declares the one Python op to onnxruntime-extensions, once in a process and before any session can have it."""

import functools
import importlib
import importlib.util
from typing import Any

from ortscan.base.fork_safe import ForkSafeLock
from ortscan.custom_ops.calls import run_call
from ortscan.custom_ops.ending import watch
from ortscan.custom_ops.shield import shielded
from ortscan.custom_ops.transport import Carried, takes_carried
from ortscan.errors import OptionError
from rewrites.python_ops.names import DOMAIN, OPERATOR
from rewrites.python_ops.wire import SLOTS

__all__ = ["declare", "has_extensions", "library_path"]

_lock = ForkSafeLock()


def library_path() -> str:
    """Return the path of the library that session options register. Raises OptionError where the package is missing."""
    return str(_extensions().get_library_path())


def declare() -> None:
    """Declare the op; after the first time nothing happens."""
    with _lock:
        _declare_once()


@functools.cache
def _declare_once() -> Any:
    library = _extensions()
    watch()
    types = [getattr(library.PyCustomOpDef, f"dt_{slot}") for slot in SLOTS]
    text = library.PyCustomOpDef.dt_string
    declared = library.onnx_op(op_type=f"{DOMAIN}::{OPERATOR}", inputs=types, outputs=types, attrs={"spec": text})(_call)
    _Answers.carried = takes_carried(declared)
    return declared


class _Answers:
    """Whether the library was seen to take results as ``Carried``; plain arrays are taken by every version."""

    carried = False


def _call(*slots: Any, spec: str = "") -> tuple[Any, ...]:
    results = shielded(run_call, spec, slots)
    return tuple([Carried(array) for array in results]) if _Answers.carried else tuple(results)


def has_extensions() -> bool:
    """Whether the package is installed that runs Python within onnxruntime."""
    return importlib.util.find_spec("onnxruntime_extensions") is not None


def _extensions() -> Any:
    try:
        return importlib.import_module("onnxruntime_extensions")
    except ImportError as error:
        raise OptionError(
            f"Python custom ops need onnxruntime-extensions (ortscan[custom-ops] has it), which cannot be imported: {error}."
        ) from None
