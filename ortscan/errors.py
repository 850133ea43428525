"""The errors a caller can catch; all derive from ``OrtscanError``."""

from rewrites.errors import (
    InvariantBroken,
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
    "MalformedLoop",
    "MigrationError",
    "ModelFileError",
    "OptionError",
    "OrtscanError",
    "UnsupportedModel",
    "VerificationFailed",
]
