"""The reason codes: what each means on one line, and what a reader of a report can do about it."""

from typing import NamedTuple

__all__ = ["TABLE", "Code"]


class Code(NamedTuple):
    """A reason code, its meaning on one line, and a longer text."""

    code: str
    meaning: str
    text: str


TABLE: tuple[Code, ...] = (
    Code(
        "SCAN-STATE",
        "What is left of the loop is a recurrence.",
        "Every step needs the state of the step before it, and the recurrence is none that ortscan knows an operator for. "
        "Everything that does not depend on the state may already have left the loop.",
    ),
)
