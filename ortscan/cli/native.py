"""``ortscan native``: show the native loop engine.

``ortscan compile IN -o OUT``: add plans for loops to a model's metadata.
"""

import argparse
from pathlib import Path

from ortscan.cli.files import check_output, check_readable
from ortscan.cli.invocation import ExitCode
from ortscan.cli.streams import naming_stdout_in_errors, show_progress
from rewrites.base.errors import OrtscanError

__all__ = ["add_compile", "add_native"]


def add_native(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the parser of the verb ``native`` to ``verbs``."""
    parser = verbs.add_parser(
        "native",
        help="show whether the native loop engine is installed",
        description="Show whether the native library, which runs compiled loops, is installed. It is a custom op library.",
    )
    parser.add_argument(
        "--library-path", action="store_true", help="print only the library's path, for RegisterCustomOpsLibrary in any language"
    )
    parser.set_defaults(run=_run_native)


def _run_native(args: argparse.Namespace) -> int:
    from ortscan.native.library import library_path, why_not

    path, why = library_path(), why_not()
    if args.library_path and path is None:
        raise OrtscanError(f"there is no native loop engine: {why}")
    with naming_stdout_in_errors():
        print(str(path) if args.library_path else f"native loop engine: {path or f'none, because {why}'}")
    return ExitCode.OK


def add_compile(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the parser of the verb ``compile`` to ``verbs``."""
    parser = verbs.add_parser(
        "compile",
        help="add plans for the loops to a model's metadata",
        description="Add plans for the loops of a model to its metadata, and change nothing else. With ortscan's execution "
        "provider, sessions in any language then run these loops natively, without Python.",
    )
    parser.add_argument("model", metavar="IN", help="the model, a file in protobuf format")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the file to write; may be IN")
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")
    parser.set_defaults(run=_run_compile)


def _run_compile(args: argparse.Namespace) -> int:
    check_readable(args.model, may_be_pipe=False)
    check_output(args.output, None)

    from ortscan.plugin.storing import store_plans

    with show_progress(f"planning the loops of {args.model}", args.quiet):
        loops = store_plans(Path(args.model), Path(args.output))
    if not args.quiet:
        with naming_stdout_in_errors():
            for loop in loops:
                print(f"{loop.title}: {'compiled' if loop.answer is not None else 'no plan'}")
            print(f"wrote {args.output}: plans for {sum(loop.answer is not None for loop in loops)} of {len(loops)} loops")
    return ExitCode.OK
