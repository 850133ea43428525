"""What goes around a run of a session whose model calls Python.

Sees to it that there is memory for what onnxruntime-extensions copies: where it finds none, it ends the process.
"""

import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from ortscan.base.forks import not_while_forking
from ortscan.custom_ops.ending import begun, counted, heeding, not_at_the_end
from ortscan.custom_ops.failures import cause_of, going_on, surfacing
from ortscan.custom_ops.signals import deferred

__all__ = ["explaining", "room_for_results", "run_of_python_ops"]

_NO_MATTER = 1 << 20
_COPIES = 4
"""An input may be cast, put beside others of its type, and copied to numpy; onnxruntime takes memory in advance."""


def room_for_inputs(arguments: Iterable[Any]) -> None:
    """Raise MemoryError where the inputs of a run, among its arguments, cannot be copied as often as may be needed."""
    fed = [value for each in arguments if isinstance(each, Mapping) for value in each.values()]
    _need(_COPIES * sum(map(_size_of, fed)))


def room_for_results(results: Iterable[np.ndarray]) -> None:
    """Raise MemoryError where the results of a call cannot be copied once."""
    _need(sum(array.nbytes for array in results))


def _size_of(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    count = getattr(value, "tensor_size_in_bytes", None)  # of an OrtValue
    return int(count()) if count is not None and value.is_tensor() else 0


def _need(count: int) -> None:
    if count > _NO_MATTER:
        np.empty(count, np.uint8)


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
