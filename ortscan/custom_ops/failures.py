"""Carry exceptions from inside an op to the caller of ``run``.

An exception that leaves a Python op crashes the process. So every exception, even KeyboardInterrupt and SystemExit, is caught and
stored under a number. The op returns this number as the size of a tensor that the next node rejects. onnxruntime's message then
contains the size, whatever thread the op ran in, and the exception is raised for the caller.

Exceptions in the thread of an ortscan run are stored until the run ends. In other threads, such as those of onnxruntime's pools
and of onnxruntime's own sessions, the origin of an exception is unknown. Only the latest of these exceptions are stored. The limit
grows with the number of active ortscan runs.
"""

import itertools
import os
import re
import threading
import traceback
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Any

import numpy as np

from ortscan.base.forks import ForkSafeLock
from ortscan.custom_ops.ending import raise_at_exit
from ortscan.custom_ops.signals import is_main_thread, protection
from ortscan.custom_ops.slots import slots_of_failure
from rewrites.python_ops.names import GUARD

__all__ = ["LOST", "cause_of", "keep_exception", "keep_for_run", "raising_op_errors", "run_safely"]

_MOST_KEPT = 16
"""The maximum number of stored exceptions of unknown origin. Each active run raises this limit by the same number."""

_MOST_OF_A_RUN = 256
_FIRST, _NUMBERS = 2, 1 << 15
LOST = _FIRST + _NUMBERS
"""The number of an exception that could not be stored."""

_MESSAGE = re.compile(re.escape(GUARD) + r".*Input shape:\{1,(\d+)\}", re.DOTALL)

_kept: dict[int, BaseException] = {}
_unowned: OrderedDict[int, None] = OrderedDict()
_active: dict[int, list[list[int]]] = {}
"""The active runs by thread (0 if unknown), the innermost last. A run is the list of the numbers of its exceptions."""

_count = itertools.count()
_lock = ForkSafeLock()


def keep_exception(error: BaseException) -> int:
    """Store an exception, without the arrays in its frames, and return its number."""
    with suppress(Exception):  # the exception's class may override anything
        _forget_locals(error)
    with _lock:
        number = next(each for each in (_FIRST + count % _NUMBERS for count in _count) if each not in _kept)
        _kept[number] = error
        runs = _active.get(threading.get_ident())
        if runs:
            runs[-1].append(number)
            while len(runs[-1]) > _MOST_OF_A_RUN:  # a run inside somebody else's op may fail repeatedly
                _kept.pop(runs[-1].pop(0), None)
        else:
            _unowned[number] = None
            while len(_unowned) > _MOST_KEPT * (1 + sum(map(len, _active.values()))):
                _kept.pop(_unowned.popitem(last=False)[0], None)
    return number


def keep_for_run(thread: int = 0) -> Callable[[], None]:
    """Store the exceptions of a run until the returned function is called.

    ``thread`` is the thread of the run, or 0 if it is a thread of onnxruntime.
    """
    numbers: list[int] = []
    with _lock:
        _active.setdefault(thread, []).append(numbers)

    def over() -> None:
        with _lock:
            left = [each for each in _active.pop(thread, ()) if each is not numbers]
            if left:
                _active[thread] = left
            for number in numbers:
                _kept.pop(number, None)

    return over


def cause_of(message: str) -> BaseException | None:
    """Return and remove the stored exception that led to onnxruntime's ``message``, or None."""
    match = _MESSAGE.search(message)
    if match is None:
        return None
    with _lock:
        _unowned.pop(int(match[1]), None)
        return _kept.pop(int(match[1]), None)


def _forget_runs() -> None:
    """Forget the runs of other threads.

    A forked child calls this function, because it has only the thread that forked.
    """
    for thread in [thread for thread in _active if thread != threading.get_ident()]:
        for number in itertools.chain(*_active.pop(thread)):
            _kept.pop(number, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_runs)


def _forget_locals(error: BaseException) -> None:
    """Clear the frames of an exception.

    The outermost frame, which still runs, is removed from the traceback.
    """
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
            BaseException.with_traceback(each, frames)  # the class may override it
        traceback.clear_frames(frames)
        left += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]


class raising_op_errors:  # noqa: N801 - it stands after "with"
    """A context manager that replaces onnxruntime's exception by the exception that a Python op raised.

    It also enters and exits ``inner``, another context manager.

    This is a class because an op may raise StopIteration, which cannot leave a context manager written as a generator.
    """

    __slots__ = ("_inner", "_over")

    def __init__(self, inner: AbstractContextManager[object]) -> None:
        self._inner = inner

    def __enter__(self) -> None:
        self._inner.__enter__()
        self._over = keep_for_run(threading.get_ident())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        cause = cause_of(str(error)) if isinstance(error, Exception) else None
        self._over()
        self._inner.__exit__(kind, error, trace)
        if cause is not None:
            try:
                raise cause from None
            finally:
                del cause


def run_safely(work: Callable[..., Sequence[np.ndarray]], *arguments: Any) -> Sequence[np.ndarray]:
    """Return the results of ``work(*arguments)``.

    If ``work`` raises an exception, store the exception, and return tensors that make the run of the model fail.
    """
    main = is_main_thread()
    before = protection.on
    try:
        try:
            if main:
                protection.on = True
                protection.deliver()
            else:
                raise_at_exit()
            results = work(*arguments)
            if main:
                protection.take_over()
                protection.on = before
            return results
        except BaseException as error:
            if main:
                protection.take_over()
                protection.on = before
            return slots_of_failure(keep_exception(error))
    except BaseException as error:  # a signal handler raised while the first exception was being kept
        try:
            return slots_of_failure(keep_exception(error))
        except BaseException:  # the exception is lost, but the run fails
            return slots_of_failure(LOST)
