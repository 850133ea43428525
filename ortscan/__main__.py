"""The command line: ``ortscan VERB …`` or ``python -m ortscan VERB …``."""

import argparse
import sys
from collections.abc import Sequence

from ortscan.cli.errors import exit_code_of
from ortscan.cli.exit_codes import ExitCode
from ortscan.cli.parser import build_parser
from ortscan.cli.streams import open_closed_streams, tolerate_odd_names

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 done; 1 an error; 2 wrong usage; 3 the result computes something else (nothing written); 4 nothing changed under
    ``--strict`` (nothing written); 5 the result is slower under ``--bench``
    (nothing written); 130 interrupted. Errors are one line on stderr.
    """
    try:
        open_closed_streams()
        tolerate_odd_names()
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    arguments = sys.argv[1:] if argv is None else argv
    given = argparse.Namespace(argv=list(arguments))
    return int(exit_code_of(lambda: build_parser().parse_args(arguments, given), arguments))


if __name__ == "__main__":
    sys.exit(main())
