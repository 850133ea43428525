"""Signals while a session with Python ops runs in the main thread.

Python calls the handler of a signal between any two steps of Python code, onnxruntime-extensions' own included, and the usual
handler of Ctrl-C raises there: that would end the process. So while such a run lasts, handlers are called only inside an op, where
whatever they raise is kept, or else after the run.
"""

import functools
import importlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["deferred", "is_main_thread", "protection"]

_SIGNALS = [int(number) for number in signal.Signals if number.name.startswith("SIG")]  # Windows has events among them too
_native: Any = importlib.import_module("_signal")  # without the conversions to enumerations, which take longer than all the rest


class _Protection:
    """``on`` while the main thread is in code that catches everything. One exception is let in at a time.

    ``running``: whether the main thread is inside a run, and ``thread`` which one that is. ``waiting``: handlers by signal that had
    to wait.
    """

    def __init__(self) -> None:
        self.on = False
        self.running = False
        self.thread = 0
        self.waiting: dict[int, tuple[Callable[..., Any], FrameType | None]] = {}

    def deliver(self) -> None:
        """Call the handlers that had to wait, all of them; raises what the last of those that raise has raised."""
        if self.waiting:
            number, (handler, frame) = self.waiting.popitem()
            try:
                handler(number, frame)
            finally:
                self.deliver()

    def take_over(self) -> None:
        """Defer all handlers there are, those that were set during the run too; outside of runs nothing happens."""
        if self.running:
            for number in _SIGNALS:
                handler = _native.getsignal(number)
                if callable(handler) and not isinstance(handler, _Deferring):
                    _native.signal(number, _Deferring(handler))


protection = _Protection()


class _Deferring:
    """Stands for a handler: waits where ``protection`` says so; outside of runs it acts as the original does."""

    def __init__(self, original: Callable[..., Any]) -> None:
        self.original = original

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if protection.running and not protection.on:
            protection.waiting[number] = (self.original, frame)
            return
        was, protection.on = protection.on, False
        self.original(number, frame)
        protection.on = was


def is_main_thread() -> bool:
    """Whether this thread is the one that handlers run in."""
    return threading.get_ident() == threading.main_thread().ident


@contextmanager
def deferred() -> Iterator[None]:
    """Run the block with the handlers of Python deferred as described; in other threads than the main one there are none.

    A handler may raise as long as it has not been replaced, and again as soon as it is back, so every step may be the last one
    here: a handler that was not put back acts as the original outside of runs.
    """
    if not is_main_thread():
        yield
    elif protection.running:
        was, protection.on = protection.on, False
        try:
            yield
        finally:
            protection.on = was
    else:
        _forget_in_children()
        try:
            protection.thread = threading.get_ident()
            protection.running, protection.on = True, False
            protection.take_over()
            yield
        finally:
            protection.running = False
            try:
                _give_back()
            finally:
                protection.deliver()


def _give_back() -> None:
    """Put back what was replaced; a handler that somebody has set since stays."""
    for number in _SIGNALS:
        handler = _native.getsignal(number)
        if isinstance(handler, _Deferring):
            _native.signal(number, handler.original)


@functools.cache
def _forget_in_children() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    """End the protection in a child that another thread has forked: the run is not there, and nothing would ever end it."""
    if protection.running and protection.thread != threading.get_ident():
        protection.running = protection.on = False
        protection.waiting.clear()
        _give_back()
