"""What goes around a run of a session whose model calls Python."""

import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ortscan.base.fork_gate import not_while_forking
from ortscan.custom_ops.ending import begun, counted, not_at_the_end
from ortscan.custom_ops.failures import cause_of, going_on, surfacing
from ortscan.custom_ops.memory import room_for_inputs
from ortscan.custom_ops.signals import deferred
from ortscan.custom_ops.terminating import heeding

__all__ = ["explaining", "run_of_python_ops"]


_ROOM = 60
"""How deep onnxruntime-extensions and what catches exceptions may call each other, at most; much less than that is needed."""


def run_of_python_ops(arguments: Sequence[Any] = ()) -> AbstractContextManager[None]:
    """Keep signals from ending the process while the block runs, and raise what ops have raised; ``arguments``: those of the run.

    Raises RecursionError and MemoryError where they would otherwise be raised in code that must not raise anything.
    """
    return surfacing(_protected(arguments))


@contextmanager
def _protected(arguments: Sequence[Any]) -> Iterator[None]:
    try:
        _need_room(_ROOM)
    except RecursionError as error:
        raise RecursionError(*error.args) from None
    room_for_inputs(arguments)
    over = heeding(arguments, threading.get_ident())
    try:
        with counted(), not_while_forking(), deferred():
            yield
    finally:
        over()


def _need_room(calls: int) -> None:
    if calls:
        _need_room(calls - 1)


def explaining(callback: Callable[..., Any], arguments: Sequence[Any] = ()) -> tuple[Callable[..., Any], Callable[[], None]]:
    """Return a callback for ``run_async`` that adds what an op raised to onnxruntime's message, and what to call if none begins.

    Raises as ``not_at_the_end`` does, and MemoryError.
    """
    not_at_the_end()
    room_for_inputs(arguments)
    counted_out, failed_out, terminated_out = begun(), going_on(), heeding(arguments)

    def over() -> None:
        counted_out()
        failed_out()
        terminated_out()

    def told(results: Any, user_data: Any, message: str) -> Any:
        try:
            cause = cause_of(message) if message else None
            if cause is not None:
                message = f"{message}\n{''.join(traceback.format_exception(cause))}"
            return callback(results, user_data, message)
        finally:
            over()

    return told, over
