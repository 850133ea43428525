"""Guard runs of a model that calls Python against signals, forks, and lack of memory or stack.

onnxruntime-extensions crashes if it cannot allocate its copies of inputs and results, so the free memory is checked first.
"""

import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from ortscan.base.forks import not_while_forking
from ortscan.custom_ops.ending import delay_exit, delaying_exit, raise_at_exit, watch_termination
from ortscan.custom_ops.failures import cause_of, keep_for_run, raising_op_errors
from ortscan.custom_ops.signals import deferred

__all__ = ["check_memory_for_results", "explaining_callback", "run_of_python_ops"]

_SMALL_BYTES = 1 << 20
_COPIES = 4
"""The number of copies of an input: a cast, a pack of inputs of one type, and a numpy array. onnxruntime also allocates ahead."""


def check_memory_for_inputs(arguments: Iterable[Any]) -> None:
    """Raise MemoryError if there is too little memory for copies of the inputs in ``arguments``."""
    inputs = [value for feed in arguments if isinstance(feed, Mapping) for value in feed.values()]
    _check_memory(_COPIES * sum(map(_size_of, inputs)))


def check_memory_for_results(results: Iterable[np.ndarray]) -> None:
    """Raise MemoryError if there is too little memory for a copy of the results of a call."""
    _check_memory(sum(array.nbytes for array in results))


def _size_of(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    count = getattr(value, "tensor_size_in_bytes", None)  # of an OrtValue
    return int(count()) if count is not None and value.is_tensor() else 0


def _check_memory(count: int) -> None:
    if count > _SMALL_BYTES:
        np.empty(count, np.uint8)


_STACK_DEPTH = 60
"""A generous estimate of the stack depth that an op and its error handling need."""


def run_of_python_ops(arguments: Sequence[Any] = ()) -> AbstractContextManager[None]:
    """Return a context manager for a run of a model with Python ops.

    It defers signals during the run, and raises the exception of an op instead of onnxruntime's exception. If there is too little
    stack or memory, it raises RecursionError or MemoryError before the run, because the run would crash the process.

    ``arguments`` are the arguments of the run.
    """
    return raising_op_errors(_protected(arguments))


@contextmanager
def _protected(arguments: Sequence[Any]) -> Iterator[None]:
    try:
        _check_stack(_STACK_DEPTH)
    except RecursionError as error:
        raise RecursionError(*error.args) from None
    check_memory_for_inputs(arguments)
    over = watch_termination(arguments, threading.get_ident())
    try:
        with delaying_exit(), not_while_forking(), deferred():
            yield
    finally:
        over()


def _check_stack(calls: int) -> None:
    if calls:
        _check_stack(calls - 1)


def explaining_callback(
    callback: Callable[..., Any], arguments: Sequence[Any] = ()
) -> tuple[Callable[..., Any], Callable[[], None]]:
    """Wrap a callback for ``run_async``, so that the exception of an op is added to onnxruntime's message.

    Returns:
        A pair: the new callback, and a function that the caller must call if the run does not start.

    Raises:
        MemoryError: there is too little memory for the inputs, ``arguments``.
        Exception: see ``raise_at_exit``.
    """
    raise_at_exit()
    check_memory_for_inputs(arguments)
    end_run, drop_exceptions, stop_watching = delay_exit(), keep_for_run(), watch_termination(arguments)

    def over() -> None:
        end_run()
        drop_exceptions()
        stop_watching()

    def explained(results: Any, user_data: Any, message: str) -> Any:
        try:
            cause = cause_of(message) if message else None
            if cause is not None:
                message = f"{message}\n{''.join(traceback.format_exception(cause))}"
            return callback(results, user_data, message)
        finally:
            over()

    return explained, over
