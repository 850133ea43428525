"""The callback through which the native library requests plans from Python.

The callback may run in any thread, because onnxruntime calls the provider in the thread that creates a session. No exception may
leave a function that C calls. Therefore, if anything fails or is interrupted, the callback answers that there is no plan, and
onnxruntime runs the loop. When the interpreter exits, the library stops requesting plans.
"""

import atexit
import ctypes
import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ortscan.plugin.planning import planned, rewritten

__all__ = ["PlanRequest", "answer_plan_requests", "record_plan_requests"]

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p)


class PlanRequest(NamedTuple):
    """A request for a plan.

    Attributes:
        model: a model with the loop as its only node.
        title: the name of the loop.
        answer: what the callback returned to the library: an encoded plan, an encoded model without the loop, or None for neither.
    """

    model: bytes
    title: str
    answer: bytes | None


class _Recording(threading.local):
    """The recorded requests of each thread.

    ``requests`` is None while this thread does not record requests.
    """

    requests: list[PlanRequest] | None = None


_recording = _Recording()


@contextmanager
def record_plan_requests() -> Iterator[list[PlanRequest]]:
    """Record the requests of this thread, and yield the list that receives them.

    While requests are recorded, a loop without a plan is rewritten with all rules to answer the request. This is slow.
    """
    requests: list[PlanRequest] = []
    _recording.requests = requests
    try:
        yield requests
    finally:
        _recording.requests = None


@functools.cache
def answer_plan_requests(path: Path) -> None:
    """Load the native library at ``path``, and make it request plans from this process.

    Repeated calls do nothing.
    """
    library = ctypes.CDLL(str(path))
    set_planner, answer = library.ortscan_set_planner, library.ortscan_answer
    set_planner.argtypes, set_planner.restype = [_CALLBACK], None
    answer.argtypes, answer.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t], None

    def ask(model: int, count: int, title: bytes, question: int) -> None:
        try:
            loop, name = ctypes.string_at(model, count), title.decode(errors="replace")
            plan = planned(loop, name) if _recording.requests is None else _answer_and_record(loop, name, _recording.requests)
            if plan is not None:
                answer(question, plan, len(plan))
        except BaseException:  # no exception may reach C
            return

    callback = _CALLBACK(ask)
    set_planner(callback)
    _in_use.append(callback)
    atexit.register(set_planner, _CALLBACK())


def _answer_and_record(model: bytes, title: str, requests: list[PlanRequest]) -> bytes | None:
    answer = next((each.answer for each in requests if each.model == model), None) or planned(model, title) or rewritten(model)
    requests.append(PlanRequest(model, title, answer))
    return answer


_in_use: list[Any] = []
"""References to the functions that libraries call, which must not be freed."""
