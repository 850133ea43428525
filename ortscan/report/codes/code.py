"""One reason code and its texts."""

from typing import NamedTuple

__all__ = ["Code"]


class Code(NamedTuple):
    """A reason code, its meaning on one line, and what it says about the model and what can be done about it."""

    code: str
    meaning: str
    text: str
