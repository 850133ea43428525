"""The HTML page that ``--report`` writes: the results of a verb, its options, versions and the date."""

import argparse
import platform
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ortscan.base import __version__
from ortscan.cli.writing import WrittenSizes
from ortscan.modelio.destination import Replacement, destination
from ortscan.page.document import document, header, listed, section
from ortscan.report.words import size
from ortscan.verification.result_html import verification_html
from rewrites.base.errors import ModelFileError

if TYPE_CHECKING:
    from ortscan.benchmark.result import Bench
    from ortscan.verification.result import Verification

__all__ = ["Page"]

_SILENT = (
    "run",
    "argv",
    "source",
    "spent",
    "subject",
    "model",
    "models",
    "names",
    "before",
    "after",
    "json",
    "verbose",
    "no_color",
    "quiet",
    "report",
)


class Page:
    """A page under construction. ``sentences`` are shown at its head."""

    def __init__(self, verb: str, title: str, sentences: Sequence[str], cards: Sequence[tuple[str, str, str]] = ()) -> None:
        self._verb, self._title, self._sentences, self._cards = verb, title, list(sentences), list(cards)
        self._sections: list[str] = []

    def add(self, html: str) -> None:
        """Add a section."""
        self._sections.append(html)

    def add_sizes(self, sizes: WrittenSizes | None) -> None:
        """Add a card with the sizes of the model before and after."""
        if sizes is not None:
            self._cards.append((f"{size(sizes.before)} → {size(sizes.after)}", "file", ""))

    def add_verification(self, verification: "Verification | None") -> None:
        """Add the result of the comparison, or a note that there was no comparison."""
        if verification is None:
            self._cards.append(("not verified", "--no-verify", "some"))
            return
        look = {"equal": "good", "different": "bad", "inconclusive": "some"}[verification.outcome]
        self._cards.append((verification.outcome, "verified on onnxruntime", look))
        self.add(section("Verification", verification_html(verification.to_dict())))

    def add_bench(self, bench: "Bench | None") -> None:
        """Add the measurements of ``bench``, or nothing if it is None."""
        if bench is not None:
            self._cards.insert(0, bench.card())
            self.add(section("Measured", bench.section()))

    def write(self, args: argparse.Namespace) -> None:
        """Write the page to ``args.report``. Raise ModelFileError if that fails."""
        head = header(f"ortscan {self._verb}", self._title, self._sentences, self._cards)
        html = document(self._title, head + "".join(self._sections) + section("How this page was created", listed(_facts(args))))
        try:
            with Replacement() as files:
                files.open(destination(args.report)).write(html.encode(errors="backslashreplace"))
                files.commit()
        except OSError as error:
            raise ModelFileError(f"{args.report} cannot be written: {error.strerror}.") from None


def _facts(args: argparse.Namespace) -> list[tuple[str, object]]:
    import onnx
    import onnx_ir
    import onnxruntime

    modules = ", ".join(f"{module.__name__} {module.__version__}" for module in (onnx, onnx_ir, onnxruntime))
    versions = f"ortscan {__version__}, {modules}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    return [
        ("command line", shlex.join(["ortscan", *args.argv])),
        ("options", ", ".join(f"{name} = {value}" for name, value in _options(vars(args)).items())),
        ("versions", versions),
        ("date", datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")),
    ]


def _options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options whose values are neither empty nor False."""
    return {
        name: value
        for name, value in arguments.items()
        if name not in _SILENT and value not in (None, [], {}) and value is not False
    }
