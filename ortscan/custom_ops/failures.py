"""Exceptions on their way from inside an op to the caller of ``run``.

No exception may leave a Python op, so it is kept here under a number. The op returns that number as the size of a tensor which the
next node refuses; onnxruntime's message then tells it, whatever thread the op ran in, and the exception is raised for the caller.
What is raised in the thread of a run of ours is kept until that ends; what is raised in other threads, pools of onnxruntime's and
plain sessions among them, could be anybody's: of those the last are kept, the more the more runs of ours are going on.

Runs the work of an op so that nothing it does can end the process: no exception leaves, and what is returned fits.

Whatever is raised (KeyboardInterrupt and SystemExit too) is kept for the caller of ``run``; the op then returns what makes the run
fail.
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
from ortscan.custom_ops.ending import not_at_the_end
from ortscan.custom_ops.signals import is_main_thread, protection
from ortscan.custom_ops.slots import failed
from rewrites.python_ops.names import GUARD

__all__ = ["LOST", "cause_of", "going_on", "keep", "shielded", "surfacing"]

_MOST_KEPT = 16
"""How many exceptions of nobody's are kept, and how many more for each run."""

_MOST_OF_A_RUN = 256
_FIRST, _NUMBERS = 2, 1 << 15
LOST = _FIRST + _NUMBERS
"""The number of an exception that could not be kept."""

_SAID = re.compile(re.escape(GUARD) + r".*Input shape:\{1,(\d+)\}", re.DOTALL)

_kept: dict[int, BaseException] = {}
_of_nobody: OrderedDict[int, None] = OrderedDict()
_going: dict[int, list[list[int]]] = {}
"""Of each thread the runs it is in, the innermost last: the numbers of what was raised there. 0 stands for threads not known."""

_count = itertools.count()
_lock = ForkSafeLock()


def keep(error: BaseException) -> int:
    """Keep an exception and return its number; it is kept without the arrays that its frames hold."""
    with suppress(Exception):  # a class of exceptions may refuse anything
        _forget_locals(error)
    with _lock:
        number = next(each for each in (_FIRST + count % _NUMBERS for count in _count) if each not in _kept)
        _kept[number] = error
        runs = _going.get(threading.get_ident())
        if runs:
            runs[-1].append(number)
            while len(runs[-1]) > _MOST_OF_A_RUN:  # a run inside an op of others may fail again and again
                _kept.pop(runs[-1].pop(0), None)
        else:
            _of_nobody[number] = None
            while len(_of_nobody) > _MOST_KEPT * (1 + sum(map(len, _going.values()))):
                _kept.pop(_of_nobody.popitem(last=False)[0], None)
    return number


def going_on(thread: int = 0) -> Callable[[], None]:
    """Keep what is raised in a thread until what is given is called; ``thread``: 0 where it is one of onnxruntime's."""
    numbers: list[int] = []
    with _lock:
        _going.setdefault(thread, []).append(numbers)

    def over() -> None:
        with _lock:
            left = [each for each in _going.pop(thread, ()) if each is not numbers]
            if left:
                _going[thread] = left
            for number in numbers:
                _kept.pop(number, None)

    return over


def cause_of(message: str) -> BaseException | None:
    """Return the exception that made onnxruntime fail with this message, and forget it; None where it was something else."""
    said = _SAID.search(message)
    if said is None:
        return None
    with _lock:
        _of_nobody.pop(int(said[1]), None)
        return _kept.pop(int(said[1]), None)


def _forget_runs() -> None:
    """Forget the runs of threads that a child does not have."""
    for thread in [thread for thread in _going if thread != threading.get_ident()]:
        for number in itertools.chain(*_going.pop(thread)):
            _kept.pop(number, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_runs)


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
        left += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]


class surfacing:  # noqa: N801 - it stands after "with"
    """Raise the exceptions of ops, tracebacks and all, in the place of onnxruntime's own for them.

    ``inner``: what is to be entered and left inside. No generator, for a StopIteration cannot leave one.
    """

    __slots__ = ("_inner", "_over")

    def __init__(self, inner: AbstractContextManager[object]) -> None:
        self._inner = inner

    def __enter__(self) -> None:
        self._inner.__enter__()
        self._over = going_on(threading.get_ident())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        cause = cause_of(str(error)) if isinstance(error, Exception) else None
        self._over()
        self._inner.__exit__(kind, error, trace)
        if cause is not None:
            try:
                raise cause from None
            finally:
                del cause


def shielded(work: Callable[..., Sequence[np.ndarray]], *arguments: Any) -> Sequence[np.ndarray]:
    """Return what ``work`` gives, or the tensors of a failed call. Raises nothing."""
    main = is_main_thread()
    before = protection.on
    try:
        try:
            if main:
                protection.on = True
                protection.deliver()
            else:
                not_at_the_end()
            results = work(*arguments)
            if main:
                protection.take_over()
                protection.on = before
            return results
        except BaseException as error:
            if main:
                protection.take_over()
                protection.on = before
            return failed(keep(error))
    except BaseException as error:  # a signal's handler raised while the first exception was being kept
        try:
            return failed(keep(error))
        except BaseException:  # nothing can be said but that it failed
            return failed(LOST)
