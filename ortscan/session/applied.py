"""What ortscan did to the model of a session: what ``session.ortscan`` is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rewrites.base.lazy import lazy

if TYPE_CHECKING:
    from rewrites.base.report import Report

__all__ = ["Applied"]


@dataclass
class Applied:
    """How the model a session runs came about.

    ``source``: ``optimized`` now, ``cached`` (optimised at an earlier start), ``unchanged`` (there was nothing to do), or
    ``original`` (it was not tried, or did not work). ``why``: one sentence, where the model is the original.
    ``verified``: how the comparison with the original ended when it was optimised, in one line; empty where there was none.
    ``seconds``: what ortscan added to the start. ``entry``: the folder in the cache, where there is one.
    """

    source: Literal["optimized", "cached", "unchanged", "original"]
    why: str | None = None
    seconds: float = 0.0
    entry: Path | None = None
    target: str = "cpu"
    verified: str = ""
    make_report: Callable[[], "Report | None"] = field(default=lambda: None, repr=False)

    @lazy
    def report(self) -> "Report | None":
        """The report of the optimisation, as ``explain`` gives it; None where none was made."""
        return self.make_report()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle needs: the report itself in the place of what makes it."""
        return {**vars(self), "report": self.report, "make_report": _none}


def _none() -> None:
    return None
