"""Everything ortscan raises on purpose.

One base class, so a caller can tell "ortscan refuses, for this reason" from a defect. Messages are one sentence that names
the node and the field; whatever they quote, they stay on one line, printable and short.
"""

from rewrites.base.plain_text import sentence

__all__ = [
    "InvariantBroken",
    "LimitExceeded",
    "MalformedLoop",
    "MigrationError",
    "ModelFileError",
    "OptionError",
    "OrtscanError",
    "UnsupportedModel",
    "VerificationFailed",
]


class OrtscanError(Exception):
    """Base of all errors ortscan raises on purpose."""

    def __init__(self, text: object = "") -> None:
        super().__init__(sentence(text))


class ModelFileError(OrtscanError):
    """A model could not be read from, or written to, where the caller said."""


class OptionError(OrtscanError):
    """An option has a value ortscan does not know or cannot honour."""


class UnsupportedModel(OrtscanError):
    """The model holds something that would be lost or damaged on the way through."""


class MalformedLoop(OrtscanError):
    """A Scan or Loop violates its operator's own definition."""


class MigrationError(OrtscanError):
    """A model cannot be written in the operator set asked for."""


class InvariantBroken(OrtscanError):
    """A rewrite left the model in a state it must never be in; always a defect of ortscan."""


class LimitExceeded(OrtscanError):
    """A model asks for more time or memory than the caller allows."""


class VerificationFailed(OrtscanError):
    """The rewritten model does not compute what the original computes; nothing was written."""
