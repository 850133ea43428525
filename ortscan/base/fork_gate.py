"""Keeps forks apart from sessions that are being made, and from runs that call Python: a child would find locks of onnxruntime's
held by threads that it does not have.

A fork waits until no other thread is inside a block, and blocks wait while there is a fork; neither for longer than a second.
Sessions and runs that are not ortscan's, and other moments in which onnxruntime holds locks, are left.
"""

import functools
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["not_while_forking"]

_MOST_SECONDS = 1.0
_A_MOMENT = 0.0005

_inside: dict[object, int] = {}
_forking: dict[int, float] = {}
"""The threads that fork, and until when others wait for that."""


@contextmanager
def not_while_forking() -> Iterator[None]:
    """Let forks of other threads wait for the block, and the block for them."""
    _watch()
    token, thread = object(), threading.get_ident()
    nested = thread in list(_inside.values())
    try:
        _inside[token] = thread
        while not nested and any(one != thread and time.monotonic() < until for one, until in list(_forking.items())):
            del _inside[token]
            time.sleep(_A_MOMENT)
            _inside[token] = thread
        yield
    finally:
        _inside.pop(token, None)


def _before() -> None:
    thread, until = threading.get_ident(), time.monotonic() + _MOST_SECONDS
    _forking[thread] = until
    while any(one != thread for one in list(_inside.values())) and time.monotonic() < until:
        time.sleep(_A_MOMENT)


def _after() -> None:
    _forking.pop(threading.get_ident(), None)


def _in_child() -> None:
    _forking.clear()
    for token in [token for token, thread in _inside.items() if thread != threading.get_ident()]:
        del _inside[token]


@functools.cache
def _watch() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
