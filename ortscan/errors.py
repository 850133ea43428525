"""The errors that callers can catch, all derived from ``OrtscanError``, and the warning."""

from rewrites.base.errors import (
    InvariantBroken,
    LimitExceeded,
    MalformedLoop,
    MigrationError,
    ModelFileError,
    OptionError,
    OrtscanError,
    UnsupportedModel,
    VerificationFailed,
)

__all__ = [
    "InvariantBroken",
    "LimitExceeded",
    "MalformedLoop",
    "MigrationError",
    "ModelFileError",
    "OptionError",
    "OrtscanError",
    "OrtscanWarning",
    "RuntimeMissing",
    "UnsupportedModel",
    "VerificationFailed",
    "is_missing_runtime",
]


class RuntimeMissing(OrtscanError, ImportError):
    """No build of onnxruntime is installed."""

    def __init__(self) -> None:
        super().__init__(_MISSING)


_MISSING = (
    "ortscan needs onnxruntime, and no build of it is installed: install onnxruntime, onnxruntime-gpu or another, or ortscan with "
    "one of them, as ortscan[cpu] or ortscan[gpu]."
)


def is_missing_runtime(error: BaseException) -> bool:
    """Return True if ``error`` is Python's error for an import of onnxruntime, which is not installed.

    Either the package is missing, or only its empty folder exists.
    """
    return isinstance(error, ImportError) and error.name == "onnxruntime" and not isinstance(error, RuntimeMissing)


class OrtscanWarning(UserWarning):
    """A step failed and ortscan used a safe alternative. For example, a session runs the original model."""
