"""The public verbs optimize, migrate and verify."""

import os
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import onnx
import onnx_ir as ir

from ortscan.base.messages import quietly
from ortscan.edge.border import wrap_errors
from ortscan.edge.limited import limited
from ortscan.edge.programs import ExportedProgram, accepting_programs
from ortscan.migration import migrated
from ortscan.modelio import AnyModel, LoadedModel, ModelLike, return_model, sealed
from ortscan.modelio.reading import read_from_pipe
from ortscan.option_types import check_flags, check_path, plain_meaning, signature_with
from ortscan.ort.runtimes import runtime_named
from ortscan.pipeline.answering import timed_answer
from ortscan.pipeline.compare_with_original import compare, level_of, require_equal
from ortscan.pipeline.compiled_weights import compiled
from ortscan.pipeline.on_difference import on_difference_of, verified
from ortscan.pipeline.rewriting import Rewriting, Rewritten
from ortscan.pipeline.self_check import self_checked
from ortscan.pipeline.smaller_weights import with_smaller_weights
from ortscan.report.outcome import Report, in_python, with_drawings
from ortscan.soundness.new_fault import new_fault
from ortscan.soundness.output_shapes import warn_of_redeclarations
from ortscan.verb_options import OPTIMIZE_OPTIONS, REWRITING_OPTIONS, MigrateOptions, OpsetTarget, check_smaller_weights
from ortscan.verb_options import OptimizeOptions as Options
from rewrites.base.errors import OptionError
from rewrites.base.report import RewriteReport as Found

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ortscan.running.budget import Level
    from ortscan.verification import Verification

__all__ = ["migrate", "optimize", "rewriting_of", "rewritten", "verify"]

_ProtoLike = str | os.PathLike[str] | bytes | onnx.ModelProto
"""The kinds of models for which a ModelProto is returned."""

_OPTIONS = "        options: those of the page of options.\n"
"""The placeholder in the docstring of ``optimize``. ``described`` replaces it by the descriptions of all options."""

_W = TypeVar("_W", bound=Callable[..., Any])
_Program = TypeVar("_Program", bound=ExportedProgram)


def described(work: _W) -> _W:
    """Replace ``**options`` in the signature and docstring of ``work`` by the options of ``optimize``."""
    work.__signature__ = signature_with(work, Options)  # type: ignore[attr-defined]
    lines = ("\n            ".join(textwrap.wrap(plain_meaning(name, option), 115)) for name, option in OPTIMIZE_OPTIONS.items())
    work.__doc__ = (work.__doc__ or "").replace(_OPTIONS, "".join(f"        {line}\n" for line in lines))
    return work


@overload
def optimize(model: ir.Model, *, report: Literal[True], **options: "Unpack[Options]") -> tuple[ir.Model, Report]: ...
@overload
def optimize(model: _ProtoLike, *, report: Literal[True], **options: "Unpack[Options]") -> tuple[onnx.ModelProto, Report]: ...
@overload
def optimize(model: _Program, *, report: Literal[True], **options: "Unpack[Options]") -> tuple[_Program, Report]: ...
@overload
def optimize(model: ir.Model, *, report: Literal[False] = False, **options: "Unpack[Options]") -> ir.Model: ...
@overload
def optimize(model: _ProtoLike, *, report: Literal[False] = False, **options: "Unpack[Options]") -> onnx.ModelProto: ...
@overload
def optimize(model: _Program, *, report: Literal[False] = False, **options: "Unpack[Options]") -> _Program: ...
@accepting_programs
@limited
@wrap_errors
@quietly
@described
def optimize(model: Any, *, report: bool = False, **options: Any) -> Any:
    """Return ``model`` without its removable loops.

    The outputs stay the same, but they may be rounded differently. For example, the new model may add numbers in another order.

    RNN, GRU and LSTM nodes are replaced if onnxruntime rejects them, or computes them differently from the ONNX specification.
    Inputs and outputs keep their names, order, types and declared shapes.

        optimize("in.onnx", shapes={"x": [64, 1, 128]}, output="out.onnx")

    Args:
        model: a path, bytes, a ModelProto, an onnx_ir Model or a torch ONNXProgram. It is never changed. The result is an onnx_ir
            Model or an ONNXProgram if ``model`` is one, else a ModelProto. Without ``output``, the result contains all weights. It
            can then be serialised only if it is smaller than 2 GB.
        report: also return the Report that ``explain`` returns, in a pair (model, report). If the results are compared and equal,
            both models are timed for the report, in about half a second.
        options: those of the page of options.

    Raises:
        OptionError: an option has an invalid value.
        MigrationError: the model cannot be written in the opset.
        VerificationFailed: the result differs from the model.
        OrtscanError: the model is malformed, or cannot be read or written.
    """
    values: dict[str, Any] = {name: option.default for name, option in OPTIMIZE_OPTIONS.items()} | options
    check_path(output := values["output"])
    check_flags(report=report)
    level, keep = level_of(values["verify"]), on_difference_of(values["on_difference"])
    weights, max_error = check_smaller_weights(values["weights"], values["max_error"])
    chosen = {name: options[name] for name in options if name in REWRITING_OPTIONS}
    rewriting = Rewriting(model, **chosen | ({} if weights is None else {"native": False}))
    started = time.monotonic()
    outcome = self_checked(rewriting)
    spent = time.monotonic() - started

    with sealed(outcome.loaded) if outcome.is_touched else nullcontext():
        if level is not None:
            outcome = verified(rewriting, outcome, lambda it: compare(rewriting.model, it, level, spent, rewriting.sizes), keep)
        if weights is not None:
            outcome = with_smaller_weights(rewriting, outcome, weights, max_error)
            outcome = compiled(outcome, chosen, level) if values["native"] else outcome
        result = return_model(outcome.loaded, output)
        if not report:
            return result
        answer = timed_answer(outcome, rewriting.model, rewriting.sizes, level or "quick")
    return result, in_python(with_drawings(outcome.report, rewriting.model, outcome.loaded.model, model, answer))


@overload
def migrate(model: ir.Model, opset: int | OpsetTarget = "auto", **options: "Unpack[MigrateOptions]") -> ir.Model: ...
@overload
def migrate(model: _ProtoLike, opset: int | OpsetTarget = "auto", **options: "Unpack[MigrateOptions]") -> onnx.ModelProto: ...
@overload
def migrate(model: _Program, opset: int | OpsetTarget = "auto", **options: "Unpack[MigrateOptions]") -> _Program: ...
@accepting_programs
@limited
@wrap_errors
@quietly
def migrate(
    model: Any,
    opset: int | str = "auto",
    *,
    runtime: str | None = None,
    verify: bool | str = "quick",
    time_limit: float | None = None,
    memory_limit: int | None = None,
    output: str | os.PathLike[str] | None = None,
) -> Any:
    """Return ``model`` in another opset. The result computes the same numbers.

    An opset-8 Scan, which runs each row of the batch separately, becomes a current Scan over the whole batch. If an operator of its
    body cannot be batched, the rows still run one at a time. If the declared shape of an output is wrong, the result declares the
    actual shape, and an OrtscanWarning is issued.

        migrate("old.onnx", 18, output="new.onnx")

    Args:
        model: as for ``optimize``.
        opset: a number, ``latest`` or ``auto`` (the default). Both words mean the newest opset that onnxruntime supports and in
            which the model can be written.
        runtime: the onnxruntime release that will run the result, if it is older than the installed one. It also limits ``latest``
            and ``auto``.
        verify, time_limit, memory_limit, output: as for ``optimize``.

    Returns:
        A model of the same kind as for ``optimize``.

    Raises:
        MigrationError: a node cannot be written in that opset. The message names it.
        VerificationFailed: the result differs from the model.
        OrtscanError: the model cannot be read, has a malformed loop, or cannot be written. Nothing is written then.
    """
    level, model = level_of(verify), read_from_pipe(model)
    started = time.monotonic()
    loaded, report = migrated(model, opset, runtime=runtime_named(runtime))
    warn_of_redeclarations(loaded)
    is_touched = report.source != report.target or report.ir_before != report.ir_after
    is_mended = bool(loaded.tied) and new_fault(model, loaded) is None
    loaded.unchanged = None if is_touched or is_mended else model
    with sealed(loaded) if is_touched else nullcontext():
        if level is not None and is_touched:
            require_equal(model, loaded, level, time.monotonic() - started)
        return return_model(loaded, output)


@accepting_programs
@wrap_errors
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
    """Run both models on onnxruntime at several sizes of each free dimension, and compare all outputs.

        verify("before.onnx", "after.onnx").ok

    Args:
        before, after: the models, each as for ``optimize``.
        inputs: a dict of arrays, a list of such dicts, or the path of an .npz file. By default the inputs are random.
        seed: the seed of the random inputs.
        rtol, atol: relative and absolute tolerance. By default they follow from the element types.
        shapes: the shapes of inputs by name; None leaves a size free.
        dims: the sizes of named dimensions.
        level: ``full`` or ``quick``. A quick comparison tries fewer and smaller cases. In a large model it compares each loop
            separately instead of comparing the whole model.
        time_limit, memory_limit: the limits in seconds and bytes. By default they follow from the level.

    Returns:
        A Verification. Its ``ok`` is True if the models agree. It also has the largest error of each output, and the first
        difference.
    """
    from ortscan import verification

    limits: dict[str, Any] = {"level": level, "time_limit": time_limit, "memory_limit": memory_limit}
    before, after = read_from_pipe(before), read_from_pipe(after)
    return verification.verify(before, after, inputs=inputs, seed=seed, rtol=rtol, atol=atol, shapes=shapes, dims=dims, **limits)


@wrap_errors
@quietly
def rewritten(model: ModelLike, *, stop_after: int | None = None, **options: Any) -> tuple[LoadedModel, Found]:
    """Return the model and the report of ``rewriting_of`` as a pair. The arguments are the same."""
    outcome = rewriting_of(model, stop_after=stop_after, **options)
    return outcome.loaded, outcome.report


@wrap_errors
@quietly
def rewriting_of(model: ModelLike, *, stop_after: int | None = None, **options: Any) -> Rewritten:
    """Rewrite ``model`` as ``optimize`` does, without verifying. Return the new model and its report.

    Args:
        model: the model.
        stop_after: the maximum number of patches to apply.
        options: the options of ``Rewriting``.
    """
    if stop_after is not None and (not isinstance(stop_after, int) or stop_after < 0):
        raise OptionError(f"stop_after must be a whole number of 0 or more, not {stop_after!r}.")
    return self_checked(Rewriting(model, **options), stop_after)
