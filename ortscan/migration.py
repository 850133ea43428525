"""Write a model in another opset: the steps of ``migrate`` without verification and output."""

import onnx_ir as ir

from ortscan.base.messages import quietly
from ortscan.edge.border import wrap_errors
from ortscan.modelio import (
    AnyModel,
    Inlining,
    LoadedModel,
    declare_negative_sizes_free,
    inline_functions,
    listed_defaults,
    load,
    restore_interface,
)
from ortscan.modelio.reading import read_from_pipe
from ortscan.ort.installed import check_opset, check_opset_of, newest_opset, opset_number
from ortscan.ort.runtimes import Runtime
from ortscan.ort.sessions import evaluate
from ortscan.soundness.corrections import fault_after_corrections
from ortscan.soundness.lacking import fit_versions, lacking
from rewrites.analysis.dependence import unread_nodes
from rewrites.base.abilities import Abilities
from rewrites.base.errors import MigrationError
from rewrites.base.report import RewriteReport
from rewrites.driver.engine import count_operators
from rewrites.driver.loop_reports import report_new_loops
from rewrites.driver.prepare import name_free_dims, prepare
from rewrites.driver.tidying import tidy
from rewrites.driver.unshielded import CrashCandidates, holds_recurrent_nodes
from rewrites.graph.context import Context, Options
from rewrites.graph.walk import all_nodes
from rewrites.migration import Migration, is_scan_8_to_lift, needs_inlining
from rewrites.migration import migrate as write_in_opset
from rewrites.tidy.declared_outputs import detach_unproven_outputs
from rewrites.tidy.moved_operands import FUSED_PART, functions_with_cast_transposes

__all__ = ["migrate_loaded", "migrated"]


_ANYWHERE = Abilities()


@wrap_errors
@quietly
def migrated(
    model: AnyModel,
    opset: int | str,
    target: Abilities = _ANYWHERE,
    runtime: Runtime | None = None,
) -> tuple[LoadedModel, Migration]:
    """Return a pair: ``model`` in another opset as a loaded model, and the report. See ``migrate``.

    Args:
        model: the model.
        opset: the opset, ``auto`` or ``latest``.
        target: what the runtime of the result supports.
        runtime: the onnxruntime release that will run the result, or None for the installed one.
    """
    check_opset(opset)
    model = read_from_pipe(model)
    newest = newest_opset() if runtime is None else min(newest_opset(), runtime.opset)
    if opset not in ("auto", "latest"):
        wanted = opset_number(opset)
        check_opset_of(runtime, wanted)
        return _to(model, wanted, target, runtime)
    source = load(model).model.opset_imports.get("", 1)
    obstacles: list[str] = []
    if source > newest:
        return _to(model, newest, target, runtime)
    for newer in range(newest, source, -1):
        try:
            loaded, report = _to(model, newer, target, runtime)
        except MigrationError as error:
            obstacles.append(f"opset {newer} is out of reach: {error}")
            continue
        report.messages += obstacles[-1:]
        return loaded, report
    loaded, report = _to(model, source, target, runtime)
    report.messages += obstacles[-1:]
    return loaded, report


def _to(model: AnyModel, opset: int, target: Abilities, runtime: Runtime | None) -> tuple[LoadedModel, Migration]:
    loaded = load(model)
    report = migrate_loaded(loaded, opset, target)
    if runtime is not None:
        report.messages += fit_versions(loaded.model, runtime)
        report.ir_after = loaded.model.ir_version
    fault = fault_after_corrections(model, loaded) if report.source != opset else None
    if fault is None and runtime is not None:
        fault = lacking(loaded.model, runtime, load(model).model)
    if fault is not None:
        raise MigrationError(f"the model cannot be migrated from opset {report.source} to {opset}: {fault}")
    return loaded, report


def migrate_loaded(loaded: LoadedModel, opset: int, target: Abilities = _ANYWHERE) -> Migration:
    """Migrate a loaded model to ``opset`` in place, for a runtime with the abilities ``target``.

    If this raises MigrationError or MalformedLoop, the model is only partly migrated.
    """
    model = loaded.model
    source = model.opset_imports.get("", 1)
    if source == opset:
        return Migration(source, opset, model.ir_version, model.ir_version)
    inlined = inline_functions(model, lambda function: _has_old_scan(function, opset) or needs_inlining(model, function, opset))
    crossed = functions_with_cast_transposes(model)
    fused = inline_functions(model, lambda function: function in crossed)
    unshielded = inline_functions(model, holds_recurrent_nodes) if unread_nodes(model.graph) else Inlining()
    name_free_dims(model)
    ctx = Context.of(model, Options(target=target), evaluate)
    shielded = CrashCandidates.of(model.graph)
    operators = count_operators(model.graph)
    prepare(ctx)
    report_new_loops(ctx, RewriteReport())
    report = write_in_opset(ctx, opset)
    report.operators = operators
    guarded = shielded.guard_exposed(ctx, lambda _rule, _entry, patch: patch.edit())
    report.messages += [
        f"{entry.where} is now guarded by an If, because no Scan before it fails on empty input any more" for entry in guarded
    ]
    tidy(ctx)
    loaded.names = ctx.names.taken
    declare_negative_sizes_free(loaded)
    detach_unproven_outputs(ctx, loaded.interface.output_shapes)
    restore_interface(loaded)
    if defaults := listed_defaults(model):
        report.messages.append(f"{len(defaults)} initializers are listed as inputs, so each run may replace them")
    report.messages += [f"inlined the function {name}, which cannot be migrated as a function" for name in inlined.inlined]
    report.messages += [f"inlined the function {name}, which {FUSED_PART}" for name in fused.inlined]
    report.messages += [f"inlined the function {name}, which holds a recurrent node" for name in unshielded.inlined]
    return report


def _has_old_scan(function: ir.Function, target: int) -> bool:
    source = function.opset_imports.get("", 1)
    return any(is_scan_8_to_lift(node, source, target) for node in all_nodes(function))
