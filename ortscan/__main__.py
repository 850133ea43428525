"""The command line: ``ortscan VERB …`` or ``python -m ortscan VERB …``."""

import _thread
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from sys import UnraisableHookArgs

__all__ = ["main"]

_INTERRUPTED = 130


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command and return its exit code. An error is printed as one line on stderr.

    0     success
    1     an error
    2     wrong usage
    3     the result computes something else (nothing is written)
    4     nothing changed, under ``--strict`` (nothing is written)
    5     the result is slower, under ``--bench`` (nothing is written)
    6     a loop is left, under ``--fail-on-loops`` or ``--fail-on``
    130   interrupted
    141   the reader of the output is gone, as in ``| head``
    """
    sys.unraisablehook = _raise_interrupts_again
    try:
        import argparse

        from ortscan.cli.command import build_parser, exit_code_of
        from ortscan.cli.streams import escape_unencodable_characters, open_closed_streams

        open_closed_streams()
        escape_unencodable_characters()
    except KeyboardInterrupt:
        return _INTERRUPTED
    arguments = sys.argv[1:] if argv is None else argv
    namespace = argparse.Namespace(argv=list(arguments))
    return int(exit_code_of(lambda: build_parser().parse_args(arguments, namespace), arguments))


def _raise_interrupts_again(unraisable: "UnraisableHookArgs") -> None:
    """If Python dropped a KeyboardInterrupt, interrupt the main thread again.

    Python drops exceptions in code that cannot raise them, such as the code of its import lock.

    Args:
        unraisable: the dropped exception. If it is not a KeyboardInterrupt, it is reported as usual.
    """
    if unraisable.exc_type is KeyboardInterrupt:
        _thread.interrupt_main()
    else:
        sys.__unraisablehook__(unraisable)


if __name__ == "__main__":
    sys.exit(main())
