"""``--list-passes`` and ``--list-codes``: names that options and verbs take, with a line on each."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from ortscan.cli.streams import printing

__all__ = ["ListCodes", "ListPasses"]


class _Listing(argparse.Action):
    """Prints pairs, and stops."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print, and leave with 0."""
        pairs = list(self._pairs())
        width = max(len(name) for name, _ in pairs)
        with printing():
            print(*(f"{name:{width}}  {said}" for name, said in pairs), sep="\n")
        parser.exit()

    def _pairs(self) -> Iterable[tuple[str, str]]:
        raise NotImplementedError


class ListPasses(_Listing):
    """Prints the passes in the order they run."""

    def _pairs(self) -> Iterable[tuple[str, str]]:
        from ortscan.options import on_request_names, rule_homes

        asked = set(on_request_names())
        for name, module in rule_homes().items():
            said = (sys.modules[module].__doc__ or "").splitlines()[0]
            yield name, f"{said}{' (only where it is asked for)' if name in asked else ''}"


class ListCodes(_Listing):
    """Prints the reason codes."""

    def _pairs(self) -> Iterable[tuple[str, str]]:
        from ortscan.report.codes import CODES

        return sorted((code, entry.meaning) for code, entry in CODES.items())
