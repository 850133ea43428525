"""``ortscan cache info|clear``: the optimised models that sessions keep."""

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from ortscan.cli.exit_codes import ExitCode
from ortscan.cli.streams import printing
from rewrites.base.errors import OptionError

if TYPE_CHECKING:
    from ortscan.cache.store import Usage

__all__ = ["add", "run"]


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "cache",
        help="show or clear the optimised models that sessions keep",
        description="Show or clear the optimised models that ortscan.InferenceSession keeps on disk.",
    )
    parser.add_argument("action", choices=("info", "clear"), help="info: say what is there; clear: remove it")
    parser.add_argument("--dir", metavar="FOLDER", help="the folder (default: ORTSCAN_CACHE_DIR, or the user's cache folder)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do it."""
    from ortscan.cache.location import cache_folder
    from ortscan.cache.store import Store

    folder = cache_folder(args.dir)
    if folder is None:
        raise OptionError("this user has no folder for a cache; name one with --dir or ORTSCAN_CACHE_DIR.")
    store = Store(folder)
    _show(args, store.clear() if args.action == "clear" else store.usage())
    return ExitCode.OK


@printing()
def _show(args: argparse.Namespace, usage: "Usage") -> None:
    from ortscan.cli.written import print_json
    from ortscan.report.words import size

    if args.json:
        print_json(action=args.action, **{**asdict(usage), "folder": str(usage.folder)})
        return
    models = f"{usage.models} optimised model{'' if usage.models == 1 else 's'}, {size(usage.bytes)}"
    if args.action == "clear":
        print(f"removed {models}, from {usage.folder}")
    else:
        print(f"{usage.folder}: {models} of at most {size(usage.limit)}")
