"""``Applied`` tells callers what ortscan did to the model of a session.

``Prepared`` is the model that the session opens.
"""

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

__all__ = ["Applied", "Prepared", "unmodified", "in_words"]

_KNOWN_ERRORS = (
    (
        r"Unsupported model IR version: (\d+), max supported IR version: (\d+)",
        r"its IR version is \1, but onnxruntime reads at most \2",
    ),
    (
        r"Opset (\d+) is under development.* for domain (\S+) is till opset (\d+)",
        r"its opset of \2 is \1, but onnxruntime supports at most \3",
    ),
    (
        r"Could not find OrtValue with name ''",
        r"onnxruntime needs a name for the last value of each state of a Scan or Loop, but one has no name",
    ),
)
_ERROR_CODE = re.compile(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ")
_SOURCE_LINE = re.compile(r"\S*/onnxruntime/\S+:\d+ \S.*?\) (?=[^\s(]+ [^\s(]+ )")


@dataclass
class Applied:
    """What ortscan did to the model of a session: the value of ``session.ortscan``.

    Attributes:
        source: ``optimized`` if the model was optimised now; ``cached`` if an earlier start optimised it; ``unchanged`` if there
            was nothing to do; ``original`` if it was not optimised, on purpose or because of an error.
        why: a sentence on why the original runs, or why the model was not cached; None in other cases.
        seconds: the time that ortscan added to the start.
        entry: the folder of the cache entry; None without a cache entry.
        target: the target that the model was optimised for.
        verified: the result of the comparison with the original when it was optimised, in one line; empty without a comparison.
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
        """The report of the optimisation, in the form that ``explain`` returns, or None."""
        return self.make_report()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy or a pickle. The report replaces the function that makes it."""
        return {**vars(self), "report": self.report, "make_report": _none}


def _none() -> None:
    return None


@dataclass
class Prepared:
    """The model that a session opens instead of its own.

    Attributes:
        applied: what ortscan did.
        path: the file to open.
        content: the bytes to open. If ``path`` and ``content`` are None, the session opens its own model.
        python_ops: True if the model has Python custom ops.
        data_of: the original model, if the model to open refers to the original's external data; otherwise None.
        locations: the locations of this external data.
        holder: an object that keeps temporary files alive.
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
        """True if this is the session's own model."""
        return self.path is None and self.content is None


def unmodified(source: SessionSource, how: Literal["original", "unchanged"], why: str | None = None) -> Prepared:
    """Return the session's own model as the model to open. ``why`` is the reason for that."""
    return Prepared(Applied(how, why), python_ops=source.outline.names(DOMAIN.encode()))


def in_words(problem: BaseException | None) -> str:
    """Return ``problem`` as one sentence, without references to onnxruntime's source code."""
    message = one_line(str(problem))
    for pattern, words in _KNOWN_ERRORS:
        match = re.search(pattern, message)
        if match is not None:
            return match.expand(words)
    if _ERROR_CODE.search(message):
        message = _ERROR_CODE.sub("", message).removeprefix("Exception during initialization: ")
        message = "onnxruntime says: " + _SOURCE_LINE.sub("", message)
    return message or type(problem).__name__
