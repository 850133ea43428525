"""What ortscan did to the model of a session: ``Applied`` says it to callers, ``Prepared`` to the session."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ortscan.session.source import SessionSource
from rewrites.base.lazy import lazy
from rewrites.base.plain_text import one_line
from rewrites.python_ops.names import DOMAIN

if TYPE_CHECKING:
    from rewrites.base.report import RewriteReport

__all__ = ["Applied", "Prepared", "as_it_is", "in_words"]

_ERRORS_IN_WORDS = (
    (
        r"Unsupported model IR version: (\d+), max supported IR version: (\d+)",
        r"its IR version is \1, and onnxruntime reads up to \2",
    ),
    (
        r"Opset (\d+) is under development.* for domain (\S+) is till opset (\d+)",
        r"its opset of \2 is \1, and onnxruntime takes up to \3",
    ),
    (
        r"Could not find OrtValue with name ''",
        r"onnxruntime needs a name for each last value of a state of Scan or Loop, and one has none",
    ),
)
_ERROR_CODE = re.compile(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ")
_SOURCE_LINE = re.compile(r"\S*/onnxruntime/\S+:\d+ \S.*?\) (?=[^\s(]+ [^\s(]+ )")


@dataclass
class Applied:
    """How the model a session runs came about: ``session.ortscan``.

    Attributes:
        source: ``optimized`` now, ``cached`` (optimised at an earlier start), ``unchanged`` (there was nothing to do), or
            ``original`` (it was not tried, or did not work).
        why: One sentence if the model is the original, or was not kept.
        seconds: What ortscan added to the start.
        entry: The folder in the cache, if there is one.
        target: What the model was optimised for.
        verified: How the comparison with the original ended when it was optimised, in one line; empty if there was none.
    """

    source: Literal["optimized", "cached", "unchanged", "original"]
    why: str | None = None
    seconds: float = 0.0
    entry: Path | None = None
    target: str = "cpu"
    verified: str = ""
    make_report: Callable[[], "RewriteReport | None"] = field(default=lambda: None, repr=False)

    @lazy
    def report(self) -> "RewriteReport | None":
        """The report of the optimisation, as ``explain`` gives it; None if there is none."""
        return self.make_report()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle needs: the report itself in the place of what makes it."""
        return {**vars(self), "report": self.report, "make_report": _none}


def _none() -> None:
    return None


@dataclass
class Prepared:
    """The model that a session opens in the place of the one it was given.

    Attributes:
        applied: What was done.
        path: The file to open.
        content: The bytes to open; if there are neither, the model that was given is opened.
        python_ops: True if it holds Python custom ops.
        data_of: The model beside which its external data is; None if it has none.
        locations: The names of that external data.
        holder: Keeps temporary files alive.
    """

    applied: Applied
    path: str | None = None
    content: bytes | None = None
    python_ops: bool = False
    data_of: SessionSource | None = None
    locations: Sequence[str] = ()
    holder: Any = field(default=None, repr=False)

    @property
    def is_original(self) -> bool:
        """True if this is the model that was given."""
        return self.path is None and self.content is None


def as_it_is(source: SessionSource, how: Literal["original", "unchanged"], why: str | None = None) -> Prepared:
    """Return the model that was given, and ``why`` it is that one."""
    return Prepared(Applied(how, why), python_ops=source.outline.names(DOMAIN.encode()))


def in_words(problem: BaseException | None) -> str:
    """Return ``problem`` as one sentence, without the lines of onnxruntime's code that its messages name."""
    message = one_line(str(problem))
    for pattern, words in _ERRORS_IN_WORDS:
        match = re.search(pattern, message)
        if match is not None:
            return match.expand(words)
    if _ERROR_CODE.search(message):
        message = _ERROR_CODE.sub("", message).removeprefix("Exception during initialization: ")
        message = "onnxruntime says: " + _SOURCE_LINE.sub("", message)
    return message or type(problem).__name__
