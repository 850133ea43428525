"""The end of the interpreter, after which nothing may call Python.

Python ends a daemon thread where it next asks for the interpreter's lock. In an op that is inside code of onnxruntime-extensions
which nothing may leave, so the whole process would abort. Before, among the functions of ``atexit``, the library lets go of what it
calls Python by, and the next call is a segmentation fault. So from then on no such run begins any more, ops in other threads fail,
and the runs there are come to their end.

``RunOptions.terminate`` between the steps of a loop in Python; between nodes onnxruntime looks at it itself.
"""

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ortscan.errors import OrtscanError

__all__ = ["begun", "counted", "heeding", "not_at_the_end", "not_terminated", "watch"]

_SAID = "[ONNXRuntimeError] : 1 : FAIL : Exiting due to terminate flag being set to true."
_going: dict[object, tuple[int, Any]] = {}


def heeding(arguments: Iterable[Any], thread: int = 0) -> Callable[[], None]:
    """Have the RunOptions among a run's arguments heeded until what is given is called; ``thread``: the one it is in, if known."""
    from onnxruntime import RunOptions

    token = object()
    for each in arguments:
        if isinstance(each, RunOptions):
            _going[token] = thread, each
    return lambda: _going.pop(token, None) and None


def not_terminated() -> None:
    """Raise what onnxruntime raises where the run this thread is in is to end.

    In a thread of onnxruntime's the run is known only where it is the only one.
    """
    if not _going:
        return
    going = list(_going.values())
    mine = [options for thread, options in going if thread == threading.get_ident()]
    if any(options.terminate for options in mine or ([going[0][1]] if len(going) == 1 else [])):
        from onnxruntime.capi.onnxruntime_pybind11_state import Fail

        raise Fail(_SAID)


_MOST_SECONDS = 10.0
"""How long the end waits for what onnxruntime is computing."""

_at_the_end = threading.Event()
_runs: dict[object, int] = {}


def watch() -> None:
    """Have the end noticed; to be called once, right after the library was imported, so that it is just before that lets go."""
    atexit.register(_wait)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget)


def not_at_the_end() -> None:
    """Raise once the interpreter is about to end: SystemExit in a daemon thread, which ends without a word, else OrtscanError."""
    if _at_the_end.is_set():
        if threading.current_thread().daemon:
            raise SystemExit("the interpreter ends")
        raise OrtscanError("the model calls Python, which it cannot any more: the interpreter ends.")


@contextmanager
def counted() -> Iterator[None]:
    """Let the end wait for the block where that is in a daemon thread. Raises as ``not_at_the_end`` does."""
    if threading.current_thread().daemon:
        over = begun(threading.get_ident())
        try:
            not_at_the_end()
            yield
        finally:
            over()
    else:
        not_at_the_end()
        yield


def begun(thread: int = 0) -> Callable[[], None]:
    """Let the end wait until what is given is called; ``thread``: the one it is in, 0 where it is one of onnxruntime's."""
    token = object()
    _runs[token] = thread

    def over() -> None:
        _runs.pop(token, None)

    return over


def _wait() -> None:
    _at_the_end.set()
    until = time.monotonic() + _MOST_SECONDS
    while _runs and time.monotonic() < until:
        time.sleep(0.001)


def _forget() -> None:
    """Forget what is in threads that a child does not have."""
    for token in [token for token, thread in _runs.items() if thread != threading.get_ident()]:
        del _runs[token]
