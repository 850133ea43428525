"""``ortscan cache info|clear``: the optimised models that sessions keep."""

import argparse
from dataclasses import asdict

from ortscan.cli.exit_codes import ExitCode
from ortscan.cli.streams import printing

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


@printing()
def run(args: argparse.Namespace) -> int:
    """Do it."""
    from ortscan.cache.location import cache_folder
    from ortscan.cache.store import Store
    from ortscan.cli.written import print_json
    from ortscan.report.words import size

    store = Store(cache_folder(args.dir))
    usage = store.clear() if args.action == "clear" else store.usage()
    if args.json:
        print_json(action=args.action, **{**asdict(usage), "folder": str(usage.folder)})
        return ExitCode.OK
    models = f"{usage.models} optimised model{'' if usage.models == 1 else 's'}, {size(usage.bytes)}"
    if args.action == "clear":
        print(f"removed {models}, from {usage.folder}")
    else:
        print(f"{usage.folder}: {models} of at most {size(usage.limit)}")
    return ExitCode.OK
