"""Exceptions on their way from inside an op to the caller of ``run``.

No exception may leave a Python op, so it is kept here under a number. The op returns that number as the size of a tensor which the
next node refuses; onnxruntime's message then tells it, whatever thread the op ran in, and the exception is raised for the caller.
"""

import itertools
import re
import traceback
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from ortscan.fork_safe import ForkSafeLock
from rewrites.python_ops.names import GUARD

__all__ = ["cause_of", "keep", "surfacing"]

_MOST_KEPT = 16
_FIRST, _NUMBERS = 2, 1 << 15
_SAID = re.compile(re.escape(GUARD) + r".*Input shape:\{1,(\d+)\}", re.DOTALL)

_kept: OrderedDict[int, BaseException] = OrderedDict()
_count = itertools.count()
_lock = ForkSafeLock()


def keep(error: BaseException) -> int:
    """Keep an exception and give its number; only the last few are kept, without the arrays that its frames hold."""
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
    each: BaseException | None = error
    while each is not None:
        if each.__traceback__ is not None and each.__traceback__.tb_next is not None:
            each.__traceback__ = each.__traceback__.tb_next
        traceback.clear_frames(each.__traceback__)
        each = each.__cause__ or each.__context__


@contextmanager
def surfacing() -> Iterator[None]:
    """Raise the exceptions of ops, tracebacks and all, in the place of onnxruntime's own for them."""
    try:
        yield
    except Exception as error:
        cause = cause_of(str(error))
        if cause is None:
            raise
        try:
            raise cause from None
        finally:
            del cause
