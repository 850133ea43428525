"""The classes for the result of optimising a session's model.

``Applied`` tells callers what ortscan did. ``Prepared`` is the model that the session opens.
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
    """What ortscan did to the model of a session. Callers find it in ``session.ortscan``.

    Attributes:
        source: which model the session runs. ``optimized``: a model that was optimised when the session was created. ``cached``: a
            model from the cache, which was optimised for an earlier session. ``unchanged``: the original, because there was nothing
            to optimise. ``original``: the original, because it should not or could not be optimised.
        why: a sentence on why the original runs, or why the optimised model was not cached; None if there is nothing to say.
        seconds: the time in seconds that ortscan needed while the session was created.
        entry: the folder of the cache entry, or None if there is no entry.
        target: the target that the model was optimised for.
        verified: one line on how the optimised model was compared with the original. Empty if it was not compared.
        make_report: a function that returns the value of ``report``.
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
        """The report of the optimisation, as ``explain`` returns it, or None if there is no report."""
        return self.make_report()

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for a copy or a pickle.

        ``make_report`` may be a function that cannot be pickled, so the copy gets the finished report instead.
        """
        return {**vars(self), "report": self.report, "make_report": _none}


def _none() -> None:
    return None


@dataclass
class Prepared:
    """The model that a session opens instead of the original.

    If ``path`` and ``content`` are None, the session opens the original.

    Attributes:
        applied: what ortscan did.
        path: the file to open.
        content: the serialised model to open, if it is not in a file.
        python_ops: True if the model calls Python custom ops.
        data_of: the original model, if the model to open uses the original's external data; otherwise None.
        locations: the locations of this external data, as the model to open names them.
        holder: an object that keeps temporary files until it is freed.
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
        """True if the session opens the original model."""
        return self.path is None and self.content is None


def unmodified(source: SessionSource, how: Literal["original", "unchanged"], why: str | None = None) -> Prepared:
    """Return a Prepared with which the session opens the original model.

    Args:
        source: the original model.
        how: ``unchanged`` if there was nothing to optimise, otherwise ``original``.
        why: the reason why the original is opened, in one sentence; None if there is nothing to say.
    """
    return Prepared(Applied(how, why), python_ops=source.outline.names(DOMAIN.encode()))


def in_words(problem: BaseException | None) -> str:
    """Return the message of the error ``problem`` in one sentence.

    Locations in onnxruntime's source code are removed.
    """
    message = one_line(str(problem))
    for pattern, words in _KNOWN_ERRORS:
        match = re.search(pattern, message)
        if match is not None:
            return match.expand(words)
    if _ERROR_CODE.search(message):
        message = _ERROR_CODE.sub("", message).removeprefix("Exception during initialization: ")
        message = "onnxruntime says: " + _SOURCE_LINE.sub("", message)
    return message or type(problem).__name__
