"""Limits of time and memory: the work runs in a subprocess, which is stopped when it exceeds a limit.

    optimize(model, time_limit=10, memory_limit=2 << 30)    ->    the same call in a subprocess, or a LimitExceeded

Untrusted models need a subprocess, because nothing else can stop onnx's inference, onnxruntime or a parser.
"""

import functools
import inspect
import math
import numbers
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

import onnx
import onnx_ir as ir

from ortscan.base import child_process
from ortscan.base.temporary import TemporaryFolder
from ortscan.errors import OrtscanWarning
from ortscan.modelio import load, save
from ortscan.modelio.reading import read_from_pipe
from rewrites.base import errors
from rewrites.base.errors import LimitExceeded, OptionError, OrtscanError
from rewrites.base.plain_text import did_you_mean, shown
from rewrites.base.report import RewriteReport

__all__ = ["checked_limits", "limited", "serve"]

_W = TypeVar("_W", bound=Callable[..., Any])
_LONGEST, _LARGEST = 10**6, 1 << 60
"""Upper bounds of the limits in seconds and bytes. Systems cannot wait longer or count more."""
_CHILD = "from ortscan.edge.limited import serve; serve()"


def limited(work: _W) -> _W:
    """Return a function that does the same as ``work(model, …)`` and also has limits of time and memory.

    Its options ``time_limit`` (in seconds) and ``memory_limit`` (in bytes) set the limits. It raises LimitExceeded if a limit is
    exceeded, and OptionError if a limit is invalid.
    """
    if not {"time_limit", "memory_limit"} <= inspect.signature(work).parameters.keys():
        raise TypeError(f"{work.__name__} has no options time_limit and memory_limit")

    @functools.wraps(work)
    def within(*positional: Any, time_limit: float | None = None, memory_limit: int | None = None, **options: Any) -> Any:
        seconds, size = checked_limits(time_limit, memory_limit)
        _check_call(work, positional, options)
        if seconds is None and size is None:
            return work(*positional, **options)
        model, args = (positional[0], positional[1:]) if positional else (options.pop("model"), ())
        with ExitStack() as stack:
            call = (work.__module__, work.__name__, _sendable(model, stack), args, options)
            reply = _ask(work.__name__, _pickled((size, call)), seconds, size)
        for text in reply["warnings"]:
            warnings.warn(text, OrtscanWarning, stacklevel=2)
        return _received(reply, isinstance(model, ir.Model))

    return within  # type: ignore[return-value]


def _check_call(work: Callable[..., Any], positional: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Raise TypeError if the arguments do not fit the signature of ``work``.

    The message is Python's, but names ``work`` instead of a wrapper.
    """
    signature = inspect.signature(work)
    known = signature.parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        for name in options.keys() - known.keys():
            raise TypeError(f"{work.__name__}() got an unexpected keyword argument '{name}'{did_you_mean(name, known)}")
    try:
        signature.bind(*positional, **options)
    except TypeError as error:
        raise TypeError(f"{work.__name__}() {error}") from None


def checked_limits(time_limit: Any, memory_limit: Any) -> tuple[float | None, int | None]:
    """Return both limits as numbers. Raise OptionError if a limit is invalid."""
    if time_limit is not None and not (_is_number(time_limit, numbers.Real) and 0 < time_limit < math.inf):
        raise OptionError(f"time_limit must be a number of seconds above 0, not {shown(time_limit)}.")
    if memory_limit is not None and not (_is_number(memory_limit, numbers.Integral) and memory_limit > 0):
        raise OptionError(f"memory_limit must be a whole number of bytes above 0, not {shown(memory_limit)}.")
    if memory_limit is not None and not child_process.CAN_LIMIT_MEMORY:
        raise OptionError("memory_limit is not supported on this system.")
    seconds = None if time_limit is None else float(min(time_limit, _LONGEST))
    return seconds, None if memory_limit is None else min(int(memory_limit), _LARGEST)


def _is_number(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _sendable(model: Any, stack: ExitStack) -> Any:
    """Return the model in a form that can be sent to the subprocess.

    An onnx_ir Model is saved to a temporary file. The file is removed when ``stack`` closes.
    """
    model = read_from_pipe(model)
    if isinstance(model, ir.Model):
        path = stack.enter_context(TemporaryFolder()) / "model.onnx"
        save(load(model), path)
        return str(path)
    return bytes(model) if isinstance(model, memoryview | bytearray) else model


def _pickled(request: Any) -> bytes:
    try:
        return pickle.dumps(request)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError):
        raise OptionError(
            "with time_limit or memory_limit, the model and all options must be values that can be pickled."
        ) from None


def _ask(verb: str, request: bytes, seconds: float | None, size: int | None) -> dict[str, Any]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = child_process.start(_CHILD, start_new_session=True, **pipes)
    try:
        answer, _ = process.communicate(request, seconds)
    except subprocess.TimeoutExpired:
        raise LimitExceeded(f"{verb} took longer than its time_limit of {seconds:g} seconds.") from None
    finally:
        child_process.end(process)
    try:
        reply: dict[str, Any] = pickle.loads(answer)
    except (EOFError, pickle.UnpicklingError):
        limit = "" if size is None else f", perhaps because it exceeded its memory_limit of {size} bytes"
        raise LimitExceeded(f"{verb} crashed its process ({child_process.cause(process)}){limit}.") from None
    return reply


def _received(reply: dict[str, Any], as_ir: bool) -> Any:
    """Return the result of the subprocess, or raise its error."""
    if "error" in reply:
        kind = getattr(errors, reply["error"], OrtscanError)
        raise kind(reply["message"])
    report = reply.get("report")
    if "model" not in reply:
        return report
    proto = onnx.ModelProto.FromString(reply["model"])
    model = ir.from_proto(proto) if as_ir else proto
    return model if report is None else (model, report)


def serve() -> None:
    """Run in the subprocess: do the one requested call, and send back its result."""
    import importlib

    child_process.end_with_parent()
    replies = child_process.own_stdout()
    size, (module, name, model, args, options) = pickle.load(sys.stdin.buffer)
    work = getattr(importlib.import_module(module), name)
    with suppress(ImportError):
        import onnxruntime  # noqa: F401  # before the limit, so that its memory does not count

    if size is not None:
        child_process.limit_memory(size)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reply = _reply(lambda: work(model, *args, **options), size)
    reply["warnings"] = [str(record.message) for record in caught if issubclass(record.category, OrtscanWarning)]
    pickle.dump(reply, replies)
    replies.flush()


def _reply(work: Callable[[], Any], size: int | None) -> dict[str, Any]:
    try:
        result = work()
        if isinstance(result, RewriteReport):
            return {"report": result}
        result, report = result if isinstance(result, tuple) else (result, None)
        proto = ir.to_proto(result) if isinstance(result, ir.Model) else result
        return {"model": proto.SerializeToString()} | ({} if report is None else {"report": report})
    except MemoryError:
        return {"error": "LimitExceeded", "message": f"the work needs more memory than the memory_limit of {size} bytes."}
    except OrtscanError as error:
        return {"error": type(error).__name__, "message": str(error)}
