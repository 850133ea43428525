"""Runs the work of an op so that nothing it does can end the process: no exception leaves, and what is returned fits.

Whatever is raised (KeyboardInterrupt and SystemExit too) is kept for the caller of ``run``; the op then returns what makes the run
fail.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ortscan.custom_ops.ending import not_at_the_end
from ortscan.custom_ops.failures import LOST, keep
from ortscan.custom_ops.ports import failed
from ortscan.custom_ops.signals import is_main_thread, protection

__all__ = ["shielded"]


def shielded(work: Callable[..., Sequence[np.ndarray]], *arguments: Any) -> Sequence[np.ndarray]:
    """Return what ``work`` gives, or the tensors of a failed call. Raises nothing."""
    main = is_main_thread()
    before = protection.on
    try:
        try:
            if main:
                protection.on = True
                protection.deliver()
            else:
                not_at_the_end()
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
        try:
            return failed(keep(error))
        except BaseException:  # nothing can be said but that it failed
            return failed(LOST)
