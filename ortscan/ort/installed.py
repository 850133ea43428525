"""Warns where the installed onnxruntime is older than those that ortscan is tested on: no build of it is a dependency."""

import functools
import re

from ortscan.base.warned import warn

__all__ = ["OLDEST", "is_old", "warn_of_old"]

OLDEST = (1, 31)
"""What older ones do wrong is not worked round everywhere: some end the process over sizes of zero."""


@functools.cache
def is_old() -> bool:
    """Whether it is older. What is run to see what comes of it then runs in processes of its own."""
    import onnxruntime

    numbers = re.match(r"([0-9]+)[.]([0-9]+)", onnxruntime.__version__)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < OLDEST


@functools.cache
def warn_of_old() -> None:
    """Issue an OrtscanWarning, once, where it is older."""
    if is_old():
        import onnxruntime

        oldest = ".".join(map(str, OLDEST))
        warn(
            f"onnxruntime {onnxruntime.__version__} is installed, and ortscan is tested with {oldest} and later: what it compares "
            f"runs in processes of its own, which takes longer. To make models for an older one, use ortscan with a new one, and "
            f"set runtime."
        )
