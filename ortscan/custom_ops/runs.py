"""What goes around a run of a session whose model calls Python."""

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ortscan.custom_ops.failures import cause_of, surfacing
from ortscan.custom_ops.signals import deferred

__all__ = ["explaining", "run_of_python_ops"]


@contextmanager
def run_of_python_ops() -> Iterator[None]:
    """Keep signals from ending the process while the block runs, and raise what ops have raised."""
    with surfacing(), deferred():
        yield


def explaining(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Give a callback for ``run_async`` that adds to onnxruntime's message what an op has raised."""

    def told(results: Any, user_data: Any, message: str) -> Any:
        cause = cause_of(message) if message else None
        if cause is not None:
            message = f"{message}\n{''.join(traceback.format_exception(cause))}"
        return callback(results, user_data, message)

    return told
