"""Make the public functions raise every error about a model or an option as an ``OrtscanError``.

Errors from elsewhere pass unchanged: interrupts, lack of memory, and errors of the caller's own code such as a signal handler or
a callback. The message of any other error says what is at fault: the model if onnx's checker rejects it too, otherwise ortscan.
"""

import functools
import inspect
import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from ortscan.errors import RuntimeMissing, is_missing_runtime
from rewrites.base.errors import InvariantBroken, ModelFileError, OrtscanError, UnsupportedModel, is_from_elsewhere
from rewrites.base.plain_text import did_you_mean, one_line

__all__ = ["wrap_errors"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def wrap_errors(work: Callable[_P, _R]) -> Callable[_P, _R]:
    """Wrap ``work(model, …)``: errors about the model become OrtscanErrors with a one-sentence message.

    The original exception is kept as the cause.
    """

    @functools.wraps(work)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return work(*args, **kwargs)
        except (OrtscanError, MemoryError, Warning):
            raise
        except Exception as error:
            if is_missing_runtime(error):
                raise RuntimeMissing from None
            if _is_signature_error(error, work, args, kwargs):
                raise TypeError(f"{error}{_suggestion(work, kwargs)}") from None
            if is_from_elsewhere(error):
                raise
            if isinstance(error, RecursionError) and _stack_was_deep():
                raise
            model = next(iter((*args, *kwargs.values())), None)
            raise _in_words(error, work.__name__, model) from error

    return wrapped


def _is_signature_error(error: Exception, work: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return True if Python raised ``error`` because the arguments do not fit the signature of ``work``."""
    if not isinstance(error, TypeError):
        return False
    try:
        inspect.signature(work).bind(*args, **kwargs)
    except TypeError:
        return True
    return False


def _suggestion(work: Callable[..., Any], kwargs: dict[str, Any]) -> str:
    known = inspect.signature(work).parameters
    return next((did_you_mean(name, known) for name in kwargs if name not in known), "")


def _stack_was_deep() -> bool:
    frame, depth = sys._getframe(2), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth > sys.getrecursionlimit() // 2


def _in_words(error: Exception, verb: str, model: Any) -> OrtscanError:
    if isinstance(error, RecursionError):
        return UnsupportedModel(f"{_name(model)} is nested deeper than {verb} supports.")
    if isinstance(error, OSError) and error.strerror:
        return ModelFileError(f"{error.filename or _name(model)}: {error.strerror}.")
    fault = _checker_error(model)
    if fault is not None:
        return UnsupportedModel(f"{_name(model)} is not a valid model: {fault}")
    what = f"{type(error).__name__}: {one_line(error)}".removesuffix(": ")
    return InvariantBroken(f"{verb} failed{_location(error.__traceback__)}, which is a defect of ortscan; please report it: {what}")


def _name(model: Any) -> str:
    return str(model) if isinstance(model, str) or hasattr(model, "__fspath__") else "the given model"


def _checker_error(model: Any) -> str | None:
    """Return the error of onnx's checker for the model, or None if it accepts the model."""
    from ortscan.modelio.source import open_source
    from ortscan.ort.model_errors import checker_fault

    try:
        with ExitStack() as stack:
            return checker_fault(open_source(model, stack).proto)
    except Exception:
        return None


def _location(trace: TracebackType | None) -> str:
    """Return a phrase such as " at Scan a" for the node that was being processed.

    Return "" if no local variable of the frames in ``trace`` holds a node.
    """
    import onnx_ir as ir

    location = ""
    trace = trace and trace.tb_next  # skip ``wrapped``: reading its variables would keep the error alive
    while trace is not None:
        local = trace.tb_frame.f_locals
        node = next((item for key in ("node", "loop", "call") if isinstance(item := _node(local.get(key)), ir.Node)), None)
        if node is not None:
            output = next((value.name for value in node.outputs if value.name), "")
            location = f" at {node.op_type} {node.name or output!r}"
        trace = trace.tb_next
    return location


def _node(value: Any) -> Any:
    return getattr(value, "node", value)
