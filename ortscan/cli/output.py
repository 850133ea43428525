"""Where a verb writes its model: OUT, -o OUT, or nowhere with --dry-run."""

import argparse

from rewrites.base.errors import OptionError

__all__ = ["add_output", "output_of"]


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("output", metavar="OUT", nargs="?", help="where to write; a folder where IN is one; - for standard output")
    parser.add_argument("-o", "--output", dest="output_option", metavar="OUT", help="the same as OUT")
    parser.add_argument("--dry-run", action="store_true", help="do everything but write the model")
    parser.add_argument("--save-as-external-data", action="store_true", help="keep the weights in a file beside the model")


def output_of(args: argparse.Namespace) -> str | None:
    """Return the path to write to, None for --dry-run; raises OptionError where there is none, or are two."""
    if args.output is not None and args.output_option is not None:
        raise OptionError("The output is given twice: as OUT and with -o.")
    output: str | None = args.output if args.output is not None else args.output_option
    if output is None and not args.dry_run:
        raise OptionError("There is nowhere to write to: give OUT, or --dry-run to write nothing.")
    return None if args.dry_run else output
