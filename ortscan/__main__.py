"""The command line: ``ortscan VERB …`` or ``python -m ortscan VERB …``."""

import sys
from collections.abc import Sequence

from ortscan.cli.errors import guarded, tolerate_odd_names
from ortscan.cli.parser import build_parser

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code.

    0 done; 1 an error; 2 wrong usage; 3 the result computes something else (nothing written); 4 nothing changed under
    ``--strict`` (nothing written); 130 interrupted. Errors are one line on stderr.
    """
    tolerate_odd_names()
    try:
        args = build_parser().parse_args(argv)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    return int(guarded(args.run, args))


if __name__ == "__main__":
    sys.exit(main())
