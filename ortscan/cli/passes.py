"""``--list-passes``: the names that ``--passes`` and ``--skip`` take."""

import argparse
from collections.abc import Sequence
from typing import Any

from ortscan.cli.streams import printing

__all__ = ["ListPasses"]


class ListPasses(argparse.Action):
    """Prints the passes in the order they run, and stops."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print, and leave with 0."""
        from ortscan.options import rule_names

        with printing():
            print(*rule_names(), sep="\n")
        parser.exit()
