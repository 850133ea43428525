"""Warn if the installed onnxruntime is older than the oldest release that ortscan is tested on."""

import functools
import re
import sys

from ortscan.base.messages import warn

__all__ = ["OLDEST", "is_old", "warn_of_old"]

OLDEST = (1, 31)
"""The oldest onnxruntime that ortscan is tested on. Older releases have defects without a workaround, such as crashes."""


@functools.cache
def is_old() -> bool:
    """Return True if onnxruntime is older than OLDEST. In this case, models are tried in subprocesses."""
    import onnxruntime

    version = re.match(r"([0-9]+)[.]([0-9]+)", onnxruntime.__version__)
    return version is not None and (int(version[1]), int(version[2])) < OLDEST


@functools.cache
def warn_of_old() -> None:
    """Issue an OrtscanWarning once if onnxruntime is older than OLDEST."""
    if is_old():
        import onnxruntime

        oldest = ".".join(map(str, OLDEST))
        python = " (it needs Python 3.11)" if sys.version_info < (3, 11) else ""
        warn(
            f"onnxruntime {onnxruntime.__version__} is installed, but ortscan is tested only with {oldest} and later{python}. "
            f"Models are therefore compared in subprocesses, which takes longer. To make models for an older onnxruntime, "
            f"install a newer one and set the option runtime."
        )
