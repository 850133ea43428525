"""Exceptions on their way from inside an op to the caller of ``run``.

No exception may leave a Python op, so it is kept here under a number. The op returns that number as the size of a tensor which the
next node refuses; onnxruntime's message then tells it, whatever thread the op ran in, and the exception is raised for the caller.
"""

import itertools
import re
import traceback
from collections import OrderedDict
from contextlib import AbstractContextManager, suppress
from types import TracebackType

from ortscan.fork_safe import ForkSafeLock
from rewrites.python_ops.names import GUARD

__all__ = ["LOST", "cause_of", "keep", "surfacing"]

_MOST_KEPT = 16
_FIRST, _NUMBERS = 2, 1 << 15
LOST = _FIRST + _NUMBERS
"""The number of an exception that could not be kept."""

_SAID = re.compile(re.escape(GUARD) + r".*Input shape:\{1,(\d+)\}", re.DOTALL)

_kept: OrderedDict[int, BaseException] = OrderedDict()
_count = itertools.count()
_lock = ForkSafeLock()


def keep(error: BaseException) -> int:
    """Keep an exception and give its number; only the last few are kept, without the arrays that its frames hold."""
    with suppress(Exception):  # a class of exceptions may refuse anything
        _forget_locals(error)
    number = _FIRST + next(_count) % _NUMBERS
    with _lock:
        _kept[number] = error
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    return number


def cause_of(message: str) -> BaseException | None:
    """Give the exception that made onnxruntime fail with this message, and forget it; None where it was something else."""
    said = _SAID.search(message)
    if said is None:
        return None
    with _lock:
        return _kept.pop(int(said[1]), None)


def _forget_locals(error: BaseException) -> None:
    """Let go of what the frames of an exception hold; the outermost, which still runs, is left out of the traceback."""
    left: list[BaseException | None] = [error]
    seen: set[int] = set()
    while left:
        each = left.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        frames = each.__traceback__
        if frames is not None and frames.tb_next is not None:
            frames = frames.tb_next
            BaseException.with_traceback(each, frames)  # whatever the class makes of it
        traceback.clear_frames(frames)
        left += [each.__cause__, each.__context__, *(each.exceptions if isinstance(each, BaseExceptionGroup) else ())]


class surfacing:  # noqa: N801 - it stands after "with"
    """Raise the exceptions of ops, tracebacks and all, in the place of onnxruntime's own for them.

    ``inner``: what is to be entered and left inside. No generator, for a StopIteration cannot leave one.
    """

    __slots__ = ("_inner",)

    def __init__(self, inner: AbstractContextManager[object]) -> None:
        self._inner = inner

    def __enter__(self) -> None:
        self._inner.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._inner.__exit__(kind, error, trace)
        cause = cause_of(str(error)) if isinstance(error, Exception) else None
        if cause is not None:
            try:
                raise cause from None
            finally:
                del cause
