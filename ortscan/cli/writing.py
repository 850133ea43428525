"""The steps of a verb that writes a model: check the files, compare on onnxruntime, write, and report."""

import argparse
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ortscan.base import __version__
from ortscan.cli.files import check_npz, check_output, check_readable, name_of, output_of, size_of_model, size_of_source
from ortscan.cli.options import checking
from ortscan.cli.streams import show_progress
from ortscan.option_words import in_flags
from ortscan.report.words import dump, size
from rewrites.base.plain_text import one_line

if TYPE_CHECKING:
    from ortscan.modelio import AnyModel, LoadedModel
    from ortscan.verification.result import Verification
    from rewrites.base.report import RewriteReport

__all__ = [
    "ADVICE",
    "WrittenSizes",
    "checked_output",
    "compare_with_original",
    "model_to_compare",
    "print_json",
    "refutation",
    "result_lines",
    "verification_lines",
    "write_model",
    "written_dict",
    "written_sentence",
]

ADVICE = "pass inputs that the original accepts: --inputs DATA.npz"


@dataclass(frozen=True)
class WrittenSizes:
    """A written file, and the bytes of the model before and after, including external data."""

    path: str
    before: int
    after: int


def checked_output(args: argparse.Namespace) -> str | None:
    """Check all files of the verb. Return the path to write to, or None for --dry-run.

    ``args.source`` becomes the model for the next steps: its path, or the model itself if it was read from a pipe.
    """
    output = output_of(args)
    check_readable(args.model)
    if args.inputs is not None:
        check_npz(args.inputs)
    if output is not None:
        check_output(output, args.inputs)
    from ortscan.modelio.reading import read_from_pipe

    args.source = read_from_pipe(args.model)
    return output


def compare_with_original(args: argparse.Namespace, loaded: "LoadedModel") -> "Verification | None":
    """Compare the original model with ``loaded``, unless --no-verify is set."""
    from ortscan import api

    if args.no_verify:
        return None
    with show_progress("comparing both models on onnxruntime", args.quiet):
        return api.verify(model_to_compare(args), loaded, **checking(args))


def model_to_compare(args: argparse.Namespace) -> "AnyModel":
    """Return the model with which the result is compared.

    This is the original model, in which the inputs of ``--fix-input`` and ``--freeze`` are constants.
    """
    from ortscan.modelio import with_constant_inputs

    return with_constant_inputs(args.source, dict(getattr(args, "fix_input", None) or []), getattr(args, "freeze", False))


def write_model(args: argparse.Namespace, loaded: "LoadedModel", output: str) -> WrittenSizes:
    """Write ``loaded`` to ``output``."""
    from ortscan.modelio import save

    before = size_of_source(args.source, loaded)
    with show_progress(f"writing {name_of(output, args)}", args.quiet):
        save(loaded, output, as_external_data=args.save_as_external_data or None)
    return WrittenSizes(output, before, size_of_model(output))


def verification_lines(verification: "Verification | None", how: str = "on onnxruntime") -> list[str]:
    """Return a line on the outcome of a comparison, and a line for each note.

    ``how`` says what was compared.
    """
    if verification is None:
        return ["not verified (--no-verify)"]
    outcome, *notes = map(one_line, in_flags(verification.summary()).splitlines())
    return [f"{'verified' if verification.ok else 'NOT verified'} {how}: {outcome}", *notes]


def _library_lines(report: "RewriteReport", written: WrittenSizes | None) -> list[str]:
    """Return a line on running the compiled loops and recurrent nodes of a result.

    Return an empty list if it has none.
    The line shows the session to create, or says why the native library is missing.
    """
    from ortscan.native.library import why_not

    if not any(operator.startswith("ai.ortscan.") for operator in report.operators_after):
        return []
    has_loops, has_nodes = any(loop.fate == "compiled" for loop in report.loops), any(cell.fired for cell in report.cells)
    compiled = "compiled " + " and ".join(["loops"] * (has_loops or not has_nodes) + ["recurrent nodes"] * has_nodes)
    why = why_not()
    if why:
        return [f"{compiled} run on onnxruntime here: {why}"]
    path = "out.onnx" if written is None else written.path
    session = f"onnxruntime.InferenceSession({path!r}, ortscan.register(onnxruntime.SessionOptions()))"
    return [f"to run the {compiled}: {session}"]


def refutation(verification: "Verification", what: str) -> str:
    """Return the error message for two models that failed the comparison, so that nothing was written.

    ``what`` is the subject of the message, such as "m.onnx and its rewrite".
    """
    summary = verification.summary().splitlines()[0]
    ways = [ADVICE] if verification.needs_inputs else []
    ways += ["compare for longer: --verify full"] if verification.level == "quick" and verification.limits_hit else []
    ways += ["write without comparing: --no-verify"]
    advice = f"; {', or '.join(ways)}" if verification.inconclusive else ""
    return f"{what} did not pass the comparison, so nothing was written: {summary}{advice}"


def written_sentence(args: argparse.Namespace, sizes: WrittenSizes | None) -> str:
    """Return a sentence that names the file that was written, or says why nothing was written."""
    if sizes is None:
        return f"nothing written{' (--dry-run)' if args.dry_run else ''}"
    return f"wrote {name_of(sizes.path, args)}: {size(sizes.after)}, before {size(sizes.before)}"


def written_dict(args: argparse.Namespace, sizes: WrittenSizes | None) -> dict[str, Any] | None:
    """Return the path and the sizes of the written file as plain data, or None without a file."""
    return None if sizes is None else {**asdict(sizes), "path": name_of(sizes.path, args)}


def result_lines(args: argparse.Namespace, report: "RewriteReport", sizes: WrittenSizes | None) -> list[str]:
    """Return the lines on the file that was written, and on running its compiled loops.

    If nothing was written because of the comparison, there is only the first line.
    """
    library = _library_lines(report, sizes) if sizes is not None or args.dry_run else []
    return [written_sentence(args, sizes), *library]


def print_json(**document: Any) -> None:
    """Print one JSON object."""
    print(dump({"ortscan": __version__, **document}))
