"""The border of the public functions: nothing but an ``OrtscanError`` leaves them over a model or an option.

What is not ortscan's own goes through as it came: an interrupt, the end of memory, and whatever the caller's code raised (a
handler of signals, a callback). All else is either of the model, which onnx's checker then refuses too, or a defect of ortscan;
it says which.
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

__all__ = ["one_sentence"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def one_sentence(work: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make whatever ``work`` raises over its first argument, a model, an OrtscanError of one sentence that keeps its cause."""

    @functools.wraps(work)
    def bordered(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return work(*args, **kwargs)
        except (OrtscanError, MemoryError, Warning):
            raise
        except Exception as error:
            if is_missing_runtime(error):
                raise RuntimeMissing from None
            if _is_of_the_call(error, work, args, kwargs):
                raise TypeError(f"{error}{_perhaps(work, kwargs)}") from None
            if is_from_elsewhere(error):
                raise
            if isinstance(error, RecursionError) and _stack_was_deep():
                raise
            model = next(iter((*args, *kwargs.values())), None)
            raise _in_words(error, work.__name__, model) from error

    return bordered


def _is_of_the_call(error: Exception, work: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether Python itself says that the function has no such parameter, or wants one more."""
    if not isinstance(error, TypeError):
        return False
    try:
        inspect.signature(work).bind(*args, **kwargs)
    except TypeError:
        return True
    return False


def _perhaps(work: Callable[..., Any], kwargs: dict[str, Any]) -> str:
    known = inspect.signature(work).parameters
    return next((did_you_mean(name, known) for name in kwargs if name not in known), "")


def _stack_was_deep() -> bool:
    frame, depth = sys._getframe(2), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth > sys.getrecursionlimit() // 2


def _in_words(error: Exception, verb: str, model: Any) -> OrtscanError:
    if isinstance(error, RecursionError):
        return UnsupportedModel(f"{_name(model)} is nested deeper than {verb} can follow.")
    if isinstance(error, OSError) and error.strerror:
        return ModelFileError(f"{error.filename or _name(model)}: {error.strerror}.")
    fault = _fault_of(model)
    if fault is not None:
        return UnsupportedModel(f"{_name(model)} is not a valid model: {fault}")
    what = f"{type(error).__name__}: {one_line(error)}".removesuffix(": ")
    return InvariantBroken(f"{verb} failed{_place(error.__traceback__)}, which is a defect of ortscan, please report it: {what}")


def _name(model: Any) -> str:
    return str(model) if isinstance(model, str) or hasattr(model, "__fspath__") else "the given model"


def _fault_of(model: Any) -> str | None:
    """Say what onnx's checker has against the model, or None."""
    from ortscan.modelio.source import open_source
    from ortscan.ort.model_errors import checker_fault

    try:
        with ExitStack() as stack:
            return checker_fault(open_source(model, stack).proto)
    except Exception:
        return None


def _place(trace: TracebackType | None) -> str:
    """Name the node that was looked at where it happened, as far as the local variables tell."""
    import onnx_ir as ir

    found = ""
    trace = trace and trace.tb_next  # looked at, the variables of ``bordered`` would hold the error for ever
    while trace is not None:
        local = trace.tb_frame.f_locals
        node = next((one for key in ("node", "loop", "call") if isinstance(one := _node(local.get(key)), ir.Node)), None)
        if node is not None:
            output = next((value.name for value in node.outputs if value.name), "")
            found = f" at {node.op_type} {node.name or output!r}"
        trace = trace.tb_next
    return found


def _node(found: Any) -> Any:
    return getattr(found, "node", found)
