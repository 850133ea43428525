"""``ortscan cache info|clear``: show or remove the optimised models that sessions keep."""

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from ortscan.cli.invocation import ExitCode
from ortscan.cli.streams import naming_stdout_in_errors
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import counted, one_line

if TYPE_CHECKING:
    from ortscan.cache.listing import Listed
    from ortscan.cache.store import Usage

__all__ = ["add", "run"]

_UNITS = ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute"))
_VERDICTS = {"optimized": "optimised", "unchanged": "nothing to optimise", "refuted": "differs"}


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the parser of the verb ``cache`` to ``verbs``."""
    parser = verbs.add_parser(
        "cache",
        help="show or clear the optimised models that sessions keep",
        description="Show or clear the optimised models that ortscan.InferenceSession keeps on disk.",
    )
    parser.add_argument("action", choices=("info", "clear"), help="info: show the entries; clear: remove them")
    parser.add_argument("models", nargs="*", metavar="MODEL.onnx", help="only the entries of these files (default: all)")
    parser.add_argument("--list", action="store_true", help="print a line for each entry: model, size, last use and result")
    parser.add_argument("--dir", metavar="FOLDER", help="the folder (default: ORTSCAN_CACHE_DIR, or the user's cache folder)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run ``ortscan cache`` with parsed arguments. Return the exit code."""
    from ortscan.cache.listing import listed_entries
    from ortscan.cache.location import cache_folder
    from ortscan.cache.store import Store

    folder = cache_folder(args.dir)
    if folder is None:
        raise OptionError("this user has no cache folder; name one with --dir or ORTSCAN_CACHE_DIR.")
    store = Store(folder)
    entries = listed_entries(store, args.models) if args.list or args.models else []
    usage = store.usage()
    if args.models:
        models = sum(entry.verdict == "optimized" for entry in entries)
        usage = replace(usage, models=models, bytes=sum(entry.bytes for entry in entries))
    if args.action == "clear" and args.models:
        for entry in entries:
            store.drop(entry.key)
    elif args.action == "clear":
        store.clear()
    _show(args, usage, entries)
    return ExitCode.OK


@naming_stdout_in_errors()
def _show(args: argparse.Namespace, usage: "Usage", entries: "Sequence[Listed]") -> None:
    from ortscan.cli.writing import print_json
    from ortscan.report.words import size

    if args.json:
        rows = {"entries": [asdict(entry) for entry in entries]} if args.list else {}
        print_json(action=args.action, **{**asdict(usage), "folder": str(usage.folder)}, **rows)
        return
    models = f"{counted(usage.models, 'optimised model')}, {size(usage.bytes)}"
    if args.action == "clear":
        print(f"removed {models}, from {usage.folder}")
    else:
        print(f"{usage.folder}: {models}{'' if args.models else f' of at most {size(usage.limit)}'}")
    for entry in entries if args.list else ():
        result = f"{_VERDICTS[entry.verdict]}{f': {one_line(entry.comparison)}' if entry.comparison else ''}"
        print(f"  {entry.model or 'passed as bytes'}, {size(entry.bytes)}, used {_ago(entry.used)}, {result}")


def _ago(when: float) -> str:
    passed = time.time() - when
    return next((f"{counted(int(passed // unit), name)} ago" for unit, name in _UNITS if passed >= unit), "just now")
