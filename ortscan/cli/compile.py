"""``ortscan compile IN -o OUT``: the same model, with plans for its loops in its metadata."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ortscan.cli.exit_codes import ExitCode
from ortscan.cli.files import check_output, check_readable
from ortscan.cli.progress import working
from ortscan.cli.streams import printing

if TYPE_CHECKING:
    from ortscan.plugin.callback import Asked

__all__ = ["add", "run"]


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "compile",
        help="add plans for the loops to a model's metadata",
        description="Write the model with plans for its loops in its metadata and nothing else changed, so that sessions of any "
        "language which have ortscan's execution provider run these loops natively, without Python.",
    )
    parser.add_argument("model", metavar="IN", help="the model, a file in the format protobuf")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="where to write the result; may be IN")
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do it."""
    check_readable(args.model, may_be_pipe=False)
    check_output(args.output, None)

    from ortscan.plugin.storing import store_plans

    with working(f"planning the loops of {args.model}", args.quiet):
        asked = store_plans(Path(args.model), Path(args.output))
    if not args.quiet:
        _show(asked, args.output)
    return ExitCode.OK


@printing()
def _show(asked: "list[Asked]", output: str) -> None:
    for each in asked:
        print(f"{each.title}: {'planned' if each.answer is not None else 'left as it is'}")
    print(f"wrote {output}: plans for {sum(each.answer is not None for each in asked)} of {len(asked)} loops")
