"""Lets the library ask Python for plans.

onnxruntime calls the provider in whatever thread makes a session. Nothing may leave a function that C calls, so whatever goes
wrong, an interrupt too, means that there is no plan, and the loop runs as ever. When the interpreter ends the library is told
to ask no more.
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

__all__ = ["Asked", "answer_questions", "recorded"]

_ASKED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p)


class Asked(NamedTuple):
    """A loop's model that was asked about, what the loop is called, and the answer."""

    model: bytes
    title: str
    answer: bytes | None


class _Recording(threading.local):
    """What was asked in this thread, while somebody wants to know."""

    asked: list[Asked] | None = None


_recording = _Recording()


@contextmanager
def recorded() -> Iterator[list[Asked]]:
    """Collect what is asked in this thread; what is answered is what there is time for then, as for no session."""
    asked: list[Asked] = []
    _recording.asked = asked
    try:
        yield asked
    finally:
        _recording.asked = None


@functools.cache
def answer_questions(path: Path) -> None:
    """Have the library at ``path``, which stays in memory, ask for plans here."""
    library = ctypes.CDLL(str(path))
    set_planner, answer = library.ortscan_set_planner, library.ortscan_answer
    set_planner.argtypes, set_planner.restype = [_ASKED], None
    answer.argtypes, answer.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t], None

    def ask(model: int, count: int, title: bytes, question: int) -> None:
        try:
            loop, name = ctypes.string_at(model, count), title.decode(errors="replace")
            found = planned(loop, name) if _recording.asked is None else _for_the_record(loop, name, _recording.asked)
            if found is not None:
                answer(question, found, len(found))
        except BaseException:  # see above
            return

    asked = _ASKED(ask)
    set_planner(asked)
    _in_use.append(asked)
    atexit.register(set_planner, _ASKED())


def _for_the_record(model: bytes, title: str, asked: list[Asked]) -> bytes | None:
    found = next((each.answer for each in asked if each.model == model), None) or planned(model, title) or rewritten(model)
    asked.append(Asked(model, title, found))
    return found


_in_use: list[Any] = []
"""What libraries call, for as long as the process lives."""
