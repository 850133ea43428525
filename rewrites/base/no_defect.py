"""What is wrong with a result that is no defect of a rule: another model, or another runtime, would have it."""

from typing import ClassVar

__all__ = ["Lacking", "NoDefect"]


class NoDefect(str):
    """Says in one sentence what is wrong. ``code``: of the reason for what is left."""

    __slots__ = ()
    code: ClassVar[str]


class Lacking(NoDefect):
    """Says what the runtime that the result is for does not have."""

    __slots__ = ()
    code = "RUNTIME"
