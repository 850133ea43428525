"""Work within limits of time and memory: in a process of its own, which is ended where it takes more, or ends by itself.

    optimize(model, time_limit=10, memory_limit=2 << 30)    ->    the same call in a child process, or a LimitExceeded

Nothing else holds for a model that nobody vetted: onnx's inference, onnxruntime and parsers of texts listen to nobody.
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
"""Limits that nothing reaches; systems cannot wait for longer, or count more."""
_CHILD = "from ortscan.edge.limited import serve; serve()"


def limited(work: _W) -> _W:
    """Let ``work(model, …)`` keep to its options ``time_limit`` (seconds) and ``memory_limit`` (bytes), where one is given.

    Raises LimitExceeded where it would take more, and OptionError for a limit that is none.
    """
    if not {"time_limit", "memory_limit"} <= inspect.signature(work).parameters.keys():
        raise TypeError(f"{work.__name__} has no limits among its options")

    @functools.wraps(work)
    def within(*given: Any, time_limit: float | None = None, memory_limit: int | None = None, **options: Any) -> Any:
        seconds, size = checked_limits(time_limit, memory_limit)
        _check_call(work, given, options)
        if seconds is None and size is None:
            return work(*given, **options)
        model, args = (given[0], given[1:]) if given else (options.pop("model"), ())
        with ExitStack() as stack:
            call = (work.__module__, work.__name__, _sendable(model, stack), args, options)
            reply = _ask(work.__name__, _pickled((size, call)), seconds, size)
        for text in reply["warnings"]:
            warnings.warn(text, OrtscanWarning, stacklevel=2)
        return _received(reply, isinstance(model, ir.Model))

    return within  # type: ignore[return-value]


def _check_call(work: Callable[..., Any], given: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Raise TypeError, as Python does, for a call that does not fit; no name of a wrapper is in it."""
    signature = inspect.signature(work)
    known = signature.parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        for name in options.keys() - known.keys():
            raise TypeError(f"{work.__name__}() got an unexpected keyword argument '{name}'{did_you_mean(name, known)}")
    try:
        signature.bind(*given, **options)
    except TypeError as error:
        raise TypeError(f"{work.__name__}() {error}") from None


def checked_limits(time_limit: Any, memory_limit: Any) -> tuple[float | None, int | None]:
    """Return both limits as numbers. Raises OptionError for one that is none."""
    if time_limit is not None and not (_is_number(time_limit, numbers.Real) and 0 < time_limit < math.inf):
        raise OptionError(f"time_limit must be a number of seconds above 0, not {shown(time_limit)}.")
    if memory_limit is not None and not (_is_number(memory_limit, numbers.Integral) and memory_limit > 0):
        raise OptionError(f"memory_limit must be a whole number of bytes above 0, not {shown(memory_limit)}.")
    if memory_limit is not None and not child_process.CAN_LIMIT_MEMORY:
        raise OptionError("memory_limit cannot be kept on this system.")
    seconds = None if time_limit is None else float(min(time_limit, _LONGEST))
    return seconds, None if memory_limit is None else min(int(memory_limit), _LARGEST)


def _is_number(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _sendable(model: Any, stack: ExitStack) -> Any:
    """Return what the child makes the same model of; an onnx_ir Model goes through a file that ``stack`` removes."""
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
        raise OptionError("with a limit of time or memory the model and all options must be plain values.") from None


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
        limit = "" if size is None else f", perhaps over its memory_limit of {size} bytes"
        raise LimitExceeded(f"{verb} ended its process ({child_process.cause(process)}){limit}.") from None
    return reply


def _received(reply: dict[str, Any], as_ir: bool) -> Any:
    """Return what the child returned, or raise what it raised."""
    if "error" in reply:
        kind = getattr(errors, reply["error"], OrtscanError)
        raise kind(reply["said"])
    report = reply.get("report")
    if "model" not in reply:
        return report
    proto = onnx.ModelProto.FromString(reply["model"])
    model = ir.from_proto(proto) if as_ir else proto
    return model if report is None else (model, report)


def serve() -> None:
    """Be the child: do the one call that is asked for, and say how it went."""
    import importlib

    child_process.end_with_parent()
    replies = child_process.own_stdout()
    size, (module, name, model, args, options) = pickle.load(sys.stdin.buffer)
    work = getattr(importlib.import_module(module), name)
    with suppress(ImportError):
        import onnxruntime  # noqa: F401  # what every call takes does not count

    if size is not None:
        child_process.limit_memory(size)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reply = _reply(lambda: work(model, *args, **options), size)
    reply["warnings"] = [str(one.message) for one in caught if issubclass(one.category, OrtscanWarning)]
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
        return {"error": "LimitExceeded", "said": f"more memory is needed than the memory_limit of {size} bytes allows."}
    except OrtscanError as error:
        return {"error": type(error).__name__, "said": str(error)}
