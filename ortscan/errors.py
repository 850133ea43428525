"""The errors a caller can catch, all derived from ``OrtscanError``, and the warning a caller can filter."""

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
    "UnsupportedModel",
    "VerificationFailed",
]


class OrtscanWarning(UserWarning):
    """Something did not work and was done the plain way instead, such as a session that runs the original model."""
