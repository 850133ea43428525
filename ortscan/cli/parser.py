"""The words the command line understands."""

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from ortscan.cli import bench, cache, compile, explain, migrate, native, optimize, verify
from ortscan.cli.version import VersionAction
from rewrites.base.near_names import did_you_mean
from rewrites.base.plain_text import one_line, sentence

__all__ = ["build_parser"]


class _Parser(argparse.ArgumentParser):
    """Ends as argparse does, with a message of one line and bounded length."""

    def error(self, message: str) -> NoReturn:
        """End so; what was meant is said where it is near to something."""
        super().error(sentence(one_line(message + self._perhaps(message))))

    def _perhaps(self, message: str) -> str:
        choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if choice is not None:
            return did_you_mean(choice[1], re.findall(r"[\w-]+", choice[2]))
        option = re.search(r"unrecognized arguments:.*?(-[\w-]+)", message)
        return did_you_mean(option[1], self._options()) if option is not None else ""

    def _options(self) -> Iterator[str]:
        for action in self._actions:
            yield from action.option_strings
            for verb in action.choices.values() if isinstance(action, argparse._SubParsersAction) else ():
                yield from verb._options() if isinstance(verb, _Parser) else ()


class _Verb(_Parser):
    """Takes options before, between and after the files, which argparse alone does not where a file may be left out."""

    _within = False

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """Parse; the intermixed parsing of argparse calls this again for its own steps."""
        if self._within:
            return super().parse_known_args(args, namespace)
        self._within = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._within = False


def build_parser() -> argparse.ArgumentParser:
    """Make the parser; each verb's namespace holds the function to run as ``run``."""
    parser = _Parser(
        prog="ortscan",
        description="Takes Scan and Loop out of ONNX models, and proves on onnxruntime that nothing changed.",
        epilog="exit codes: 0 done, 1 error, 2 wrong usage, 3 verification failed, 4 nothing changed under --strict, "
        "5 slower under --bench, 130 interrupted",
    )
    parser.add_argument("--version", action=VersionAction, help="show the versions of ortscan and what it runs on")
    verbs: argparse._SubParsersAction[argparse.ArgumentParser] = parser.add_subparsers(
        title="verbs", metavar="VERB", required=True, parser_class=_Verb
    )
    optimize.add(verbs)
    migrate.add(verbs)
    explain.add(verbs)
    verify.add(verbs)
    bench.add(verbs)
    cache.add(verbs)
    compile.add(verbs)
    native.add(verbs)
    return parser
