"""``ortscan migrate IN OUT --opset N``: migrate a model, compare both models, and write the result."""

import argparse
import time
from typing import TYPE_CHECKING

from ortscan.cli.files import add_output, check_report, name_of
from ortscan.cli.invocation import ExitCode, add_limits
from ortscan.cli.options import add_checking, add_display, add_level, add_options, add_report
from ortscan.cli.streams import show_progress
from ortscan.cli.writing import checked_output, compare_with_original, write_model
from rewrites.base.errors import VerificationFailed

if TYPE_CHECKING:
    from ortscan.ort.runtimes import Runtime
    from rewrites.migration import Migration

__all__ = ["add", "run"]


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the parser of the verb ``migrate`` to ``verbs``."""
    parser = verbs.add_parser(
        "migrate",
        help="write a model in another opset",
        description="Migrate a model to another opset, including opset-8 Scans. Compare the result with the original on "
        "onnxruntime, and write it if they agree.",
    )
    parser.add_argument("model", metavar="IN", help="the model to migrate; a folder of models; - for standard input")
    add_output(parser)
    add_report(parser)
    parser.add_argument(
        "--opset",
        default="auto",
        metavar="auto|latest|N",
        help="the opset, a number; auto (default) and latest both mean the newest opset that the installed onnxruntime runs "
        "and to which the model can be migrated",
    )
    add_options(parser, "runtime")
    group = add_checking(parser)
    add_options(group, "shapes", "dims")
    add_level(group)
    add_display(parser).add_argument("-q", "--quiet", action="store_true", help="print errors only")
    add_limits(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run ``ortscan migrate`` with parsed arguments. Return the exit code."""
    output = checked_output(args)
    check_report(args.report, args.model, output, args.inputs)

    from ortscan.cli.show import show_migration
    from ortscan.cli.writing import refutation
    from ortscan.drawing.drawings import drawings_of, old_scans
    from ortscan.migration import migrated
    from ortscan.ort.runtimes import runtime_named

    started = time.monotonic()
    with show_progress(f"migrating {name_of(args.model, args)}", args.quiet):
        loaded, migration = migrated(args.source, args.opset, runtime=runtime_named(args.runtime))
    if args.opset in ("auto", "latest") and migration.source != migration.target:
        migration.messages.insert(0, _choice(migration, runtime_named(args.runtime)))
    args.spent = time.monotonic() - started
    verification = compare_with_original(args, loaded)
    refuted = verification is not None and not verification.ok
    drawings = drawings_of(old_scans(args.source), args.source, loaded.model) if args.report is not None else {}
    sizes = None
    if output is not None and not refuted:
        sizes = write_model(args, loaded, output)
    show_migration(args, migration, verification, sizes, drawings)
    if verification is not None and refuted:
        raise VerificationFailed(refutation(verification, f"{name_of(args.model, args)} and its migration"))
    return ExitCode.OK


def _choice(migration: "Migration", runtime: "Runtime | None") -> str:
    """Return a sentence that says why the opset of the result was chosen."""
    import onnxruntime

    from ortscan.ort.installed import newest_opset

    installed = f"onnxruntime {onnxruntime.__version__}"
    newest, name = newest_opset(), installed
    if runtime is not None and runtime.opset < newest:
        newest, name = runtime.opset, str(runtime)
    limit = f"{name} runs" if migration.target == newest else "the model can be migrated to"
    return f"opset {migration.target} was chosen because it is the newest that {limit}; --opset N chooses another"
