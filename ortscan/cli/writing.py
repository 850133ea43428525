"""The way of a verb that writes a model: look at the files first, compare on onnxruntime, then write."""

import argparse
from typing import TYPE_CHECKING

from ortscan.cli.files import check_npz, check_output, check_readable, size_of_model, size_of_source
from ortscan.cli.options import checking
from ortscan.cli.output import output_of
from ortscan.cli.progress import working
from ortscan.cli.written import Sizes

if TYPE_CHECKING:
    from ortscan.modelio import AnyModel, LoadedModel
    from ortscan.verification.result import Verification

__all__ = ["checked_output", "compared", "original", "write_model"]


def checked_output(args: argparse.Namespace) -> str | None:
    """Return the path to write to, None for --dry-run, once all files the verb is given have been looked at.

    ``args.given`` becomes the model to go on with: its path, or what was read from it where that is a pipe.
    """
    output = output_of(args)
    check_readable(args.model)
    if args.inputs is not None:
        check_npz(args.inputs)
    if output is not None:
        check_output(output, args.inputs)
    from ortscan.modelio.reading import read_from_pipe

    args.given = read_from_pipe(args.model)
    return output


def compared(args: argparse.Namespace, loaded: "LoadedModel") -> "Verification | None":
    """Compare the model of the verb with ``loaded``, unless --no-verify."""
    from ortscan import api

    if args.no_verify:
        return None
    with working("comparing both models on onnxruntime", args.quiet):
        return api.verify(original(args), loaded, **checking(args))


def original(args: argparse.Namespace) -> "AnyModel":
    """Return what the result of the verb is to compute: the model with the values of inputs that are built in."""
    from ortscan.modelio import with_inputs_built_in

    return with_inputs_built_in(args.given, dict(getattr(args, "fix_input", None) or []), getattr(args, "freeze", False))


def write_model(args: argparse.Namespace, loaded: "LoadedModel", output: str) -> Sizes:
    """Write ``loaded`` to ``output``."""
    from ortscan.modelio import save

    before = size_of_source(args.given, loaded)
    with working(f"writing {output}", args.quiet):
        save(loaded, output, as_external_data=args.save_as_external_data or None)
    return Sizes(output, before, size_of_model(output))
