"""End all runs of Python ops at the exit of the interpreter, and one run on ``RunOptions.terminate``.

Two things at exit would crash the process. First, an ``atexit`` function of onnxruntime-extensions frees data that every call to
Python needs, so the next call crashes. Later, Python stops each daemon thread when the thread next asks for the interpreter's lock.
If the thread is inside an op, Python unwinds code of onnxruntime-extensions that must not be unwound, and the process aborts. So
once the exit begins, no run starts, ops in other threads than the main thread fail, and the exit waits for the runs in progress.

onnxruntime checks ``RunOptions.terminate`` between nodes. Loops in Python check it between their steps.
"""

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ortscan.errors import OrtscanError

__all__ = ["delay_exit", "delaying_exit", "raise_at_exit", "raise_if_terminated", "watch_exit", "watch_termination"]

_MESSAGE = "[ONNXRuntimeError] : 1 : FAIL : Exiting due to terminate flag being set to true."
_active: dict[object, tuple[int, Any]] = {}


def watch_termination(arguments: Iterable[Any], thread: int = 0) -> Callable[[], None]:
    """Let loops in Python stop when ``RunOptions.terminate`` is set.

    This ends when the returned function is called.

    Args:
        arguments: the arguments of a run, which may contain its RunOptions.
        thread: the thread of the run, or 0 if it is unknown.
    """
    from onnxruntime import RunOptions

    token = object()
    for each in arguments:
        if isinstance(each, RunOptions):
            _active[token] = thread, each
    return lambda: _active.pop(token, None) and None


def raise_if_terminated() -> None:
    """Raise onnxruntime's exception if ``RunOptions.terminate`` is set for the run of this thread.

    For a thread of onnxruntime's pool, it is not known which run it works for. If exactly one run is active, this function checks
    that run. If several runs are active, it does nothing.
    """
    if not _active:
        return
    runs = list(_active.values())
    own = [options for thread, options in runs if thread == threading.get_ident()]
    if any(options.terminate for options in own or ([runs[0][1]] if len(runs) == 1 else [])):
        from onnxruntime.capi.onnxruntime_pybind11_state import Fail

        raise Fail(_MESSAGE)


_MOST_SECONDS = 10.0
"""The longest time in seconds that the exit waits for runs in progress."""

_exiting = threading.Event()
_runs: dict[object, int] = {}


def watch_exit() -> None:
    """Make the exit of the interpreter wait for runs.

    Call this function once, right after the import of onnxruntime-extensions. Python calls exit functions in reverse order, so the
    wait then precedes the exit function of this library.
    """
    atexit.register(_wait)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget)


def raise_at_exit() -> None:
    """Raise an exception if the interpreter is exiting.

    In a daemon thread this is SystemExit, so that the thread ends silently. In any other thread it is OrtscanError.
    """
    if _exiting.is_set():
        if threading.current_thread().daemon:
            raise SystemExit("the interpreter exits")
        raise OrtscanError("the model calls Python, which is not possible while the interpreter exits.")


@contextmanager
def delaying_exit() -> Iterator[None]:
    """Make the exit of the interpreter wait until the ``with`` block ends, even in a daemon thread.

    Raise the errors of ``raise_at_exit``.
    """
    if threading.current_thread().daemon:
        over = delay_exit(threading.get_ident())
        try:
            raise_at_exit()
            yield
        finally:
            over()
    else:
        raise_at_exit()
        yield


def delay_exit(thread: int = 0) -> Callable[[], None]:
    """Make the exit of the interpreter wait until the returned function is called.

    ``thread`` is the thread of the run, or 0 if it is a thread of onnxruntime.
    """
    token = object()
    _runs[token] = thread

    def over() -> None:
        _runs.pop(token, None)

    return over


def _wait() -> None:
    _exiting.set()
    until = time.monotonic() + _MOST_SECONDS
    while _runs and time.monotonic() < until:
        time.sleep(0.001)


def _forget() -> None:
    """Forget the runs of other threads.

    A forked child calls this function, because it has only the thread that forked.
    """
    for token in [token for token, thread in _runs.items() if thread != threading.get_ident()]:
        del _runs[token]
