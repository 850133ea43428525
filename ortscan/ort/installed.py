"""Warns where the installed onnxruntime is older than those that ortscan is tested on: no build of it is a dependency."""

import functools
import re

from ortscan.base.warned import warn

__all__ = ["OLDEST", "warn_of_old"]

OLDEST = (1, 31)
"""What older ones do wrong is not worked round everywhere: some end the process over sizes of zero."""


@functools.cache
def warn_of_old() -> None:
    """Issue an OrtscanWarning, once, where it is older."""
    import onnxruntime

    numbers = re.match(r"([0-9]+)[.]([0-9]+)", onnxruntime.__version__)
    if numbers is not None and (int(numbers[1]), int(numbers[2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        warn(
            f"onnxruntime {onnxruntime.__version__} is installed, and ortscan is tested with {oldest} and later: what it compares "
            f"and runs may fail, or end the process. To make models for an older one, use ortscan with a new one, and set runtime."
        )
