"""What ``import ortscan`` offers: optimize, migrate, verify."""

import os
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import onnx
import onnx_ir as ir

from ortscan.base.messages import quietly
from ortscan.edge.border import one_sentence
from ortscan.edge.limited import limited
from ortscan.migration import migrated
from ortscan.modelio import AnyModel, LoadedModel, ModelLike, return_model, sealed
from ortscan.modelio.reading import read_from_pipe
from ortscan.option_types import check_flags, check_path, plain_meaning, signature_with
from ortscan.ort.runtimes import runtime_named
from ortscan.pipeline.compare_with_original import compare, level_of, require_equal
from ortscan.pipeline.on_difference import on_difference_of, verified
from ortscan.pipeline.rewriting import Rewriting, Rewritten
from ortscan.pipeline.self_check import is_left_broken, self_checked
from ortscan.report.outcome import Report, drawn
from ortscan.soundness.new_fault import new_fault
from ortscan.soundness.output_shapes import warn_of_redeclarations
from ortscan.verb_options import OPTIMIZE_OPTIONS, REWRITING_OPTIONS, MigrateOptions, OpsetTarget
from ortscan.verb_options import OptimizeOptions as Options
from rewrites.base.errors import OptionError
from rewrites.base.report import RewriteReport as Found

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ortscan.running.budget import Level
    from ortscan.verification import Verification

__all__ = ["migrate", "optimize", "rewriting_of", "rewritten", "verify"]

_ProtoLike = str | os.PathLike[str] | bytes | onnx.ModelProto
"""A model for which a ModelProto comes back."""

_OPTIONS = "        options: those of the page of options.\n"
"""The line of the docstring of ``optimize`` that the descriptions of all options replace."""

_W = TypeVar("_W", bound=Callable[..., Any])


def described(work: _W) -> _W:
    """Return ``work``, which takes ``**options``, with the signature and the docstring of the options of ``optimize``."""
    work.__signature__ = signature_with(work, Options)  # type: ignore[attr-defined]
    lines = ("\n            ".join(textwrap.wrap(plain_meaning(name, option), 115)) for name, option in OPTIMIZE_OPTIONS.items())
    work.__doc__ = (work.__doc__ or "").replace(_OPTIONS, "".join(f"        {line}\n" for line in lines))
    return work


@overload
def optimize(model: ir.Model, *, report: Literal[True], **options: "Unpack[Options]") -> tuple[ir.Model, Report]: ...
@overload
def optimize(model: _ProtoLike, *, report: Literal[True], **options: "Unpack[Options]") -> tuple[onnx.ModelProto, Report]: ...
@overload
def optimize(model: ir.Model, *, report: Literal[False] = False, **options: "Unpack[Options]") -> ir.Model: ...
@overload
def optimize(model: _ProtoLike, *, report: Literal[False] = False, **options: "Unpack[Options]") -> onnx.ModelProto: ...
@limited
@one_sentence
@quietly
@described
def optimize(
    model: ModelLike, *, report: bool = False, **options: Any
) -> onnx.ModelProto | ir.Model | tuple[onnx.ModelProto | ir.Model, Report]:
    """Return ``model`` without the loops that can go, computing the same numbers up to the order of sums.

    RNN, GRU and LSTM nodes that onnxruntime refuses, or computes otherwise than the operators' text says, become ones it runs.
    Inputs, outputs, their names, order, types and declared shapes stay.

    Args:
        model: a path, bytes, a ModelProto or an onnx_ir Model. It is never changed. An onnx_ir Model comes back as such, all others
            as a ModelProto. Without ``output`` that holds all weights, and cannot be serialised over 2 GB.
        report: return the model and its Report, as ``explain`` gives it.
        options: those of the page of options.

    Raises:
        OptionError: an option is not of its kind.
        MigrationError: the model cannot be written in the opset.
        VerificationFailed: the result differs from the model.
        OrtscanError: the model is malformed, or cannot be read or written.
    """
    values: dict[str, Any] = {name: option.default for name, option in OPTIMIZE_OPTIONS.items()} | options
    check_path(output := values["output"])
    check_flags(report=report)
    level, keep = level_of(values["verify"]), on_difference_of(values["on_difference"])
    rewriting = Rewriting(model, **{name: options[name] for name in options if name in REWRITING_OPTIONS})
    started = time.monotonic()
    outcome = self_checked(rewriting)
    spent = time.monotonic() - started

    with sealed(outcome.loaded) if outcome.is_touched else nullcontext():
        if level is not None:
            outcome = verified(rewriting, outcome, lambda one: compare(rewriting.model, one, level, spent, rewriting.sizes), keep)
        result = return_model(outcome.loaded, output, rewriting.model if is_left_broken(rewriting, outcome) else None)
    return (result, drawn(outcome.report, rewriting.model, outcome.loaded.model, model)) if report else result


@overload
def migrate(model: ir.Model, opset: int | OpsetTarget, **options: "Unpack[MigrateOptions]") -> ir.Model: ...
@overload
def migrate(model: _ProtoLike, opset: int | OpsetTarget, **options: "Unpack[MigrateOptions]") -> onnx.ModelProto: ...
@limited
@one_sentence
@quietly
def migrate(
    model: ModelLike,
    opset: int | str,
    *,
    runtime: str | None = None,
    verify: bool | str = "quick",
    time_limit: float | None = None,
    memory_limit: int | None = None,
    output: str | os.PathLike[str] | None = None,
) -> onnx.ModelProto | ir.Model:
    """Return ``model`` in another opset, computing the same.

    An opset-8 Scan becomes a present Scan that works on the whole batch, or row by row if an operator in it forbids that. An output
    declared with a wrong shape gets its actual shape, with an OrtscanWarning.

    Args:
        model: as for ``optimize``.
        opset: a number; or ``latest`` or ``auto``, the newest that onnxruntime runs and that has all operators.
        runtime: the onnxruntime that the result is for, if it is older than the installed one; also limits ``latest`` and ``auto``.
        verify, time_limit, memory_limit, output: as for ``optimize``.

    Raises:
        MigrationError: a node, which it names, cannot be written in that opset.
        VerificationFailed: the result differs from the model.
        OrtscanError: the model cannot be read, has a malformed loop, or cannot be written. Nothing is written then.
    """
    level, model = level_of(verify), read_from_pipe(model)
    started = time.monotonic()
    loaded, report = migrated(model, opset, runtime=runtime_named(runtime))
    warn_of_redeclarations(loaded)
    is_touched = report.source != report.target or report.ir_before != report.ir_after
    with sealed(loaded) if is_touched else nullcontext():
        if level is not None and is_touched:
            require_equal(model, loaded, level, time.monotonic() - started)
        is_sound = is_touched or new_fault(model, loaded) is None
        return return_model(loaded, output, None if is_sound else model)


@one_sentence
@quietly
def verify(
    before: AnyModel,
    after: AnyModel,
    *,
    inputs: Any = None,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    dims: Mapping[str, int] | None = None,
    level: "Level" = "full",
    time_limit: float | None = None,
    memory_limit: int | None = None,
) -> "Verification":
    """Run both models on onnxruntime at several sizes of each free dimension and compare all outputs.

    Args:
        before, after: the models.
        inputs: a dict of arrays, a list of such dicts, or the path of an .npz file, instead of random inputs.
        seed: of the random inputs.
        rtol, atol: tolerances instead of those of the types.
        shapes, dims: fix shapes of inputs, and sizes of named dimensions.
        level: ``quick`` tries few, small cases, and each loop of a large model by itself.
        time_limit, memory_limit: seconds and bytes instead of those of the level.
    """
    from ortscan import verification

    limits: dict[str, Any] = {"level": level, "time_limit": time_limit, "memory_limit": memory_limit}
    before, after = read_from_pipe(before), read_from_pipe(after)
    return verification.verify(before, after, inputs=inputs, seed=seed, rtol=rtol, atol=atol, shapes=shapes, dims=dims, **limits)


@one_sentence
@quietly
def rewritten(model: ModelLike, *, stop_after: int | None = None, **options: Any) -> tuple[LoadedModel, Found]:
    """Rewrite as ``optimize`` does, and return the loaded model and the report without verifying. See ``rewriting_of``."""
    outcome = rewriting_of(model, stop_after=stop_after, **options)
    return outcome.loaded, outcome.report


@one_sentence
@quietly
def rewriting_of(model: ModelLike, *, stop_after: int | None = None, **options: Any) -> Rewritten:
    """Rewrite as ``optimize`` does, and return the outcome without verifying.

    Args:
        model: the model.
        stop_after: the most patches to apply.
        options: those of ``Rewriting``.
    """
    if stop_after is not None and (not isinstance(stop_after, int) or stop_after < 0):
        raise OptionError(f"stop_after must be a whole number of 0 or more, not {stop_after!r}.")
    return self_checked(Rewriting(model, **options), stop_after)
