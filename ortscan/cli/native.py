"""``ortscan native``: whether there is a library of loop plans, and where."""

import argparse

from ortscan.cli.exit_codes import ExitCode
from ortscan.cli.streams import printing
from rewrites.base.errors import OrtscanError

__all__ = ["add", "run"]


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "native",
        help="show whether the native loop engine is there",
        description="Show whether this ortscan has its native loop engine, an onnxruntime custom op library.",
    )
    parser.add_argument(
        "--library-path", action="store_true", help="print the library's path alone, for RegisterCustomOpsLibrary in any language"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do it."""
    from ortscan.native.library import library_path, why_not

    path, why = library_path(), why_not()
    if args.library_path and path is None:
        raise OrtscanError(f"there is no native loop engine: {why}")
    _show(str(path) if args.library_path else f"native loop engine: {path or f'none, since {why}'}")
    return ExitCode.OK


@printing()
def _show(line: str) -> None:
    print(line)
