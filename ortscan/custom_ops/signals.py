"""Defer signals while a session with Python ops runs in the main thread.

Python calls signal handlers between any two steps of Python code, even inside onnxruntime-extensions. The usual handler of Ctrl-C
raises KeyboardInterrupt. An exception inside onnxruntime-extensions crashes the process. So during the run of such a session,
handlers are called only inside an op, where exceptions are stored. All other calls of handlers wait until the run has ended.
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

_SIGNALS = [int(number) for number in signal.Signals if number.name.startswith("SIG")]  # on Windows this also contains events
_native: Any = importlib.import_module("_signal")  # avoids conversions to enumerations, which take most of the time


class _Protection:
    """The state of the protection against signal handlers.

    Attributes:
        on: True while the main thread runs code that catches every exception. Handlers may then raise exceptions, one at a time.
        running: True while the main thread is inside a run.
        thread: the main thread.
        waiting: the deferred calls of handlers by signal.
    """

    def __init__(self) -> None:
        self.on = False
        self.running = False
        self.thread = 0
        self.waiting: dict[int, tuple[Callable[..., Any], FrameType | None]] = {}

    def deliver(self) -> None:
        """Call all deferred handlers. If several handlers raise, the last exception is raised."""
        if self.waiting:
            number, (handler, frame) = self.waiting.popitem()
            try:
                handler(number, frame)
            finally:
                self.deliver()

    def take_over(self) -> None:
        """Replace each signal handler by one that defers the call of the original handler.

        Handlers that were set during the run are replaced too. If the main thread is not inside a run, do nothing.
        """
        if self.running:
            for number in _SIGNALS:
                handler = _native.getsignal(number)
                if callable(handler) and not isinstance(handler, _Deferring):
                    _native.signal(number, _Deferring(handler))


protection = _Protection()


class _Deferring:
    """A replacement for a signal handler.

    During a run, but outside of ops, it defers the call of the original handler. Otherwise it calls the original handler.
    """

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
    """Return True in the main thread, which runs all signal handlers."""
    return threading.get_ident() == threading.main_thread().ident


@contextmanager
def deferred() -> Iterator[None]:
    """Defer Python's signal handlers while the ``with`` block runs.

    Outside the main thread, only run the block.

    While this function replaces or restores handlers, an original handler may still be called and raise an exception. A replacement
    may then never be removed. This is harmless, because outside runs a replacement calls the original handler.
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
                _restore_handlers()
            finally:
                protection.deliver()


def _restore_handlers() -> None:
    """Restore the replaced handlers, unless other code has set new handlers since."""
    for number in _SIGNALS:
        handler = _native.getsignal(number)
        if isinstance(handler, _Deferring):
            _native.signal(number, handler.original)


@functools.cache
def _forget_in_children() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    """End the protection in a forked child if the main thread is not in the child.

    A child has only the thread that forked. If that is not the main thread, the child has no run that would end the protection.
    """
    if protection.running and protection.thread != threading.get_ident():
        protection.running = protection.on = False
        protection.waiting.clear()
        _restore_handlers()
