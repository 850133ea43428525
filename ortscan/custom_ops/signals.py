"""Signals while a session with Python ops runs in the main thread.

Python calls the handler of a signal between any two steps of Python code, onnxruntime-extensions' own included, and the usual
handler of Ctrl-C raises there: that would end the process. So while such a run lasts, handlers are called only inside an op, where
whatever they raise is kept, or else after the run.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["deferred", "protection"]

_NAMES = ("SIGINT", "SIGTERM", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGBREAK")
_SIGNALS = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]

_ORIGINAL = "deferred_original"


class _Protection:
    """``on`` while the main thread is in code that catches everything. One exception is let in at a time.

    ``running``: whether the main thread is inside a run. ``waiting``: handlers by signal that had to wait.
    """

    def __init__(self) -> None:
        self.on = False
        self.running = False
        self.waiting: dict[int, tuple[Callable[..., Any], FrameType | None]] = {}

    def deliver(self) -> None:
        """Call the handlers that had to wait, all of them; raises what the last of those that raise has raised."""
        if self.waiting:
            number, (handler, frame) = self.waiting.popitem()
            try:
                handler(number, frame)
            finally:
                self.deliver()


protection = _Protection()


def is_main_thread() -> bool:
    """Whether this thread is the one that handlers run in."""
    return threading.current_thread() is threading.main_thread()


@contextmanager
def deferred() -> Iterator[None]:
    """Run the block with the handlers of Python deferred as described; in other threads than the main one there are none.

    A handler may raise as long as it has not been replaced, and again as soon as it is back, so every step may be the last one
    here: a handler that was not put back acts as the original outside of runs.
    """
    if not is_main_thread() or protection.running:
        yield
        return
    replaced: dict[int, Any] = {}
    try:
        protection.running, protection.on = True, False
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler) and not isinstance(handler, signal.Handlers):
                replaced[number] = getattr(handler, _ORIGINAL, handler)
                signal.signal(number, _deferring(replaced[number]))
        yield
    finally:
        protection.running = False
        for number, handler in replaced.items():
            signal.signal(number, handler)
        protection.deliver()


def _deferring(handler: Callable[..., Any]) -> Callable[[int, FrameType | None], None]:
    def defer(number: int, frame: FrameType | None) -> None:
        if protection.running and not protection.on:
            protection.waiting[number] = (handler, frame)
            return
        was, protection.on = protection.on, False
        handler(number, frame)
        protection.on = was

    setattr(defer, _ORIGINAL, handler)
    return defer
