"""What ``import ortscan`` offers: optimize, migrate, verify."""

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal, overload

import onnx
import onnx_ir as ir

from ortscan.base.messages import quietly
from ortscan.edge.border import one_sentence
from ortscan.edge.limited import limited
from ortscan.migration import migrated
from ortscan.modelio import AnyModel, LoadedModel, ModelLike, return_model, sealed
from ortscan.modelio.reading import read_from_pipe
from ortscan.option_types import MigrateOptions, OpsetTarget, ProtoLike
from ortscan.option_types import OptimizeOptions as Options
from ortscan.options import DEFAULT_MEMORY_BUDGET, check_flags, check_path
from ortscan.ort.runtimes import runtime_named
from ortscan.pipeline.compare_with_original import compare, level_of, require_equal
from ortscan.pipeline.on_difference import on_difference_of, verified
from ortscan.pipeline.rewriting import Costs, Dims, Outcome, Rewriting, Shapes
from ortscan.pipeline.self_check import is_left_broken, self_checked
from ortscan.report.outcome import Report, drawn
from ortscan.soundness.new_fault import new_fault
from ortscan.soundness.output_shapes import warn_of_redeclarations
from rewrites.base.errors import OptionError
from rewrites.base.report import Report as Found

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ortscan.running.budget import Level
    from ortscan.verification import Verification

__all__ = ["migrate", "optimize", "rewriting_of", "rewritten", "verify"]


@overload
def optimize(model: ir.Model, *, report: Literal[True], **options: "Unpack[Options]") -> tuple[ir.Model, Report]: ...
@overload
def optimize(model: ProtoLike, *, report: Literal[True], **options: "Unpack[Options]") -> tuple[onnx.ModelProto, Report]: ...
@overload
def optimize(model: ir.Model, *, report: Literal[False] = False, **options: "Unpack[Options]") -> ir.Model: ...
@overload
def optimize(model: ProtoLike, *, report: Literal[False] = False, **options: "Unpack[Options]") -> onnx.ModelProto: ...
@limited
@one_sentence
@quietly
def optimize(
    model: ModelLike,
    *,
    target: str = "cpu",
    opset: int | str = "auto",
    shapes: Shapes | None = None,
    dims: Dims | None = None,
    fix_shapes: Shapes | None = None,
    fix_dims: Dims | None = None,
    fix_inputs: Mapping[str, Any] | None = None,
    freeze: bool | Iterable[str] = False,
    max_unroll: int | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    costs: Costs | None = None,
    fast_math: bool = False,
    custom_ops: bool = False,
    native: bool = False,
    runtime: str | None = None,
    passes: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    verify: bool | str = "quick",
    on_difference: str = "raise",
    time_limit: float | None = None,
    memory_limit: int | None = None,
    output: str | os.PathLike[str] | None = None,
    report: bool = False,
) -> onnx.ModelProto | ir.Model | tuple[onnx.ModelProto | ir.Model, Report]:
    """Return ``model`` without the loops that can go, computing the same numbers up to the order of sums.

    RNN, GRU and LSTM nodes that onnxruntime refuses, or computes otherwise than the operators' text says, become ones it runs.

    ``model``: a path, bytes, a ModelProto or an onnx_ir Model; it is never changed. An onnx_ir Model comes back as one, all others
    as a ModelProto. Inputs, outputs, their names, order, types and declared shapes stay.
    ``target``: where it will run, a name out of ``ortscan.targets.TARGETS``; ``onnx`` uses standard operators only.
    ``opset``: ``auto`` takes a model that holds a loop, and is older than opset 18, there first where that is sound: most rewrites
    have their operators by then. ``keep`` stays in the opset of the model; a number takes it there, or raises MigrationError.
    ``shapes``: typical shapes of inputs, such as ``{"x": [64, 1, 128]}``, for cost decisions only; None leaves a size open.
    ``dims``: the same by the names of dimensions, such as ``{"T": 64}``.
    ``fix_shapes``: shapes to build into the model: it takes no others from then on, and what depends on them becomes constant, trip
    counts first of all. None leaves a dimension free; a named one is bound wherever it is named. The outputs' shapes follow.
    ``fix_dims``: the same by the names of dimensions.
    ``fix_inputs``: values of inputs that are always the same, such as ``{"sr": 16000}``: they become constants, are inputs no more,
    and what they decide is decided. ``freeze``: initializers that are listed as inputs become constants too, all of them (True) or
    those named; elsewhere they are defaults, which another value may take the place of in a run.
    ``max_unroll``: unroll loops of up to so many steps, one step after the other, whether that gains or not; 0 for none. By
    default what the target asks for: where it runs no loops any number, up to 20 000 nodes; on ``cpu`` up to 16 steps that gain.
    ``memory_budget``: bytes that the stacked temporaries of one loop may take. ``costs``: a file of ``ortscan bench --calibrate``.
    ``fast_math``: also allow algebraic expansions that round differently (pairwise distances by a matrix product).
    ``custom_ops``: also run what onnxruntime has no kernel for, in wider types or by calls of Python, and sequences without steps
    or rows (``guard-scan`` and ``guard-recurrence`` are used then). A model that calls Python runs only in a Python process with
    ortscan and onnxruntime-extensions (``ortscan.InferenceSession``, or ``ortscan.register``).
    ``native``: loops that are left become calls of functions that hold them. Where ortscan's library is registered, as it is in
    ``ortscan.InferenceSession`` and after ``ortscan.register``, a compiled form runs instead; elsewhere they run as they were.
    ``runtime``: the onnxruntime that the result is for, such as ``"1.17"``, where it is older than the installed one: opset, IR
    version, operators and element types are those that it has. The comparison is on the installed one all the same.
    ``passes``, ``skip``: rules to use, or not, by the names that reports show; ``default``: all that are used where none are named.
    Only where named: ``guard-scan`` and ``guard-recurrence``, which let a model run on sequences without steps or rows.
    ``verify``: compare both models on onnxruntime: ``quick``, in seconds; ``full``, as the command line does; False, not at all.
    Where the original runs on nothing that can be made up, an OrtscanWarning says that nothing was compared.
    ``on_difference``: ``raise`` VerificationFailed where they differ, which names the patch that does it; or ``keep`` all patches
    but those that do, with an OrtscanWarning.
    ``time_limit``, ``memory_limit``: seconds and bytes that all of it may take. With one of them the work is done in a process of
    its own, about a second slower, and LimitExceeded is raised where it would take more; for models that nobody vetted.
    ``output``: also write the result there (external data is kept external); may be the path the model came from. What comes back
    for a path then refers to the external data beside the output instead of holding it. Without ``output`` it holds all weights,
    and over 2 GB cannot be serialised. ``report``: return the Report beside the model, as ``explain`` gives it.

    Raises OptionError: an option is not of its kind. Raises OrtscanError: the model is malformed, or cannot be read or written.
    """
    check_path(output)
    check_flags(report=report)
    level, keep = level_of(verify), on_difference_of(on_difference)
    rewriting = Rewriting(
        model,
        target=target,
        opset=opset,
        shapes=shapes,
        dims=dims,
        fix_shapes=fix_shapes,
        fix_dims=fix_dims,
        fix_inputs=fix_inputs,
        freeze=freeze,
        max_unroll=max_unroll,
        memory_budget=memory_budget,
        costs=costs,
        fast_math=fast_math,
        custom_ops=custom_ops,
        native=native,
        runtime=runtime,
        passes=passes,
        skip=skip,
    )
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
def migrate(model: ProtoLike, opset: int | OpsetTarget, **options: "Unpack[MigrateOptions]") -> onnx.ModelProto: ...
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

    An opset-8 Scan becomes a Scan of today that works on all rows at once, or where an operator in it forbids that, row by row.

    ``model``: a path, bytes, a ModelProto or an onnx_ir Model; it is never changed. An onnx_ir Model comes back as one, all others
    as a ModelProto. Inputs, outputs, their names, order, types and declared shapes stay.
    ``opset``: a number; or ``latest`` or ``auto``, the newest that the installed onnxruntime runs and to which all operators of the
    model can be taken.
    ``runtime``: the onnxruntime that the result is for, such as ``"1.17"``, if it is older than the installed one; ``latest`` and
    ``auto`` go no further than it does.
    ``verify``: compare both models on onnxruntime: ``quick``, in seconds; ``full``, as the command line does; False, not at all.
    Where the original runs on nothing that can be made up, an OrtscanWarning says that nothing was compared.
    ``time_limit``, ``memory_limit``, ``output``: as for ``optimize``. An output declared with another shape than it has gets
    the shape that it has, with an OrtscanWarning.

    Raises MigrationError, which names the node, if one cannot be written in that opset, VerificationFailed if the two compute other
    numbers, and OrtscanError if the model cannot be read, holds a malformed loop, or cannot be written. Nothing is written then.
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
    shapes: Shapes | None = None,
    dims: Dims | None = None,
    level: "Level" = "full",
    time_limit: float | None = None,
    memory_limit: int | None = None,
) -> "Verification":
    """Run both models on onnxruntime at several sizes of each free dimension and compare all outputs.

    ``inputs``: a dict of arrays, a list of such dicts, or the path of an .npz file, instead of random inputs. ``rtol``, ``atol``:
    tolerances instead of those that fit the types. ``shapes``, ``dims``: fix shapes of inputs, and sizes of named dimensions.
    ``level``: ``quick`` tries few, small cases, and of a large model each loop by itself. ``time_limit``, ``memory_limit``:
    seconds and bytes instead of those of the level. See ``Verification`` for the result.
    """
    from ortscan import verification

    limits: dict[str, Any] = {"level": level, "time_limit": time_limit, "memory_limit": memory_limit}
    before, after = read_from_pipe(before), read_from_pipe(after)
    return verification.verify(before, after, inputs=inputs, seed=seed, rtol=rtol, atol=atol, shapes=shapes, dims=dims, **limits)


@one_sentence
@quietly
def rewritten(model: ModelLike, *, stop_after: int | None = None, **options: Any) -> tuple[LoadedModel, Found]:
    """Do what ``optimize`` does up to verifying and handing back: give the rewritten model as it is held inside, and the report.

    ``options``: those of ``optimize`` that say how to rewrite; ``debug``: check the whole model after each patch; ``progress``:
    called with the number of loops done and of all loops. ``stop_after``: apply that many patches only.
    """
    outcome = rewriting_of(model, stop_after=stop_after, **options)
    return outcome.loaded, outcome.report


@one_sentence
@quietly
def rewriting_of(model: ModelLike, *, stop_after: int | None = None, **options: Any) -> Outcome:
    """Do the same, and return all that came of it."""
    if stop_after is not None and (not isinstance(stop_after, int) or stop_after < 0):
        raise OptionError(f"stop_after must be a whole number of 0 or more, not {stop_after!r}.")
    return self_checked(Rewriting(model, **options), stop_after)
