"""Keep forked processes usable.

A forked child has only one thread. Locks that other threads held at the fork would never be released in it.

``ForkSafeLock`` is a lock that is free in the child.

``not_while_forking`` protects a block that holds locks of onnxruntime: a block that creates a session, or that runs a session with
calls to Python. A fork waits until the block ends, and the block waits until a fork ends. Both wait at most a second. Sessions that
ortscan did not create are not protected. Other code in which onnxruntime holds locks is not protected either.
"""

import functools
import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

__all__ = ["ForkSafeLock", "not_while_forking"]

_MOST_SECONDS = 1.0
_A_MOMENT = 0.0005

_locks: "weakref.WeakSet[ForkSafeLock]" = weakref.WeakSet()
_inside: dict[object, int] = {}
_forking: dict[int, float] = {}
"""The threads that fork now, each with the time at which other threads stop waiting for it."""


class ForkSafeLock:
    """A reentrant lock as a context manager.

    In a forked child it is free, even if a thread of the parent held it.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> "ForkSafeLock":
        self._lock.acquire()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lock.release()

    def _renew(self) -> None:
        self._lock = threading.RLock()


@contextmanager
def not_while_forking() -> Iterator[None]:
    """Wait until no other thread forks, then run the block.

    If another thread starts to fork during the block, that thread waits until the block ends. No thread waits longer than a second.
    """
    _watch()
    token, thread = object(), threading.get_ident()
    nested = thread in list(_inside.values())
    try:
        _inside[token] = thread
        while not nested and any(other != thread and time.monotonic() < until for other, until in list(_forking.items())):
            del _inside[token]
            time.sleep(_A_MOMENT)
            _inside[token] = thread
        yield
    finally:
        _inside.pop(token, None)


def _before_fork() -> None:
    thread, until = threading.get_ident(), time.monotonic() + _MOST_SECONDS
    _forking[thread] = until
    while any(other != thread for other in list(_inside.values())) and time.monotonic() < until:
        time.sleep(_A_MOMENT)


def _after_fork() -> None:
    _forking.pop(threading.get_ident(), None)


def _in_forked_child() -> None:
    _forking.clear()
    for token in [token for token, thread in _inside.items() if thread != threading.get_ident()]:
        del _inside[token]


@functools.cache
def _watch() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_forked_child)


def _renew_locks() -> None:
    for lock in list(_locks):
        lock._renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
