"""Runs the work of an op so that nothing it does can end the process: no exception leaves, and what is returned fits.

Whatever is raised (KeyboardInterrupt and SystemExit too) is kept for the caller of ``run``; the op then returns what makes the run
fail.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ortscan.custom_ops.failures import keep
from ortscan.custom_ops.ports import failed
from ortscan.custom_ops.signals import protection

__all__ = ["shielded"]

_MAIN = threading.main_thread


def shielded(work: Callable[..., Sequence[np.ndarray]], *arguments: Any) -> Sequence[np.ndarray]:
    """Give what ``work`` gives, or the tensors of a failed call. Raises nothing."""
    main = threading.current_thread() is _MAIN()
    before = protection.on
    try:
        try:
            if main:
                protection.on = True
                protection.deliver()
            results = work(*arguments)
            if main:
                protection.take_over()
                protection.on = before
            return results
        except BaseException as error:
            if main:
                protection.take_over()
                protection.on = before
            return failed(keep(error))
    except BaseException as error:  # a signal's handler raised while the first exception was being kept
        return failed(keep(error))
