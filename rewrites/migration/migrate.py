"""Write a whole model in another opset: its operators node by node, its opset-8 Scans as Scans of today.

    IR 3, opset 16  g(x, W) {W = ...}  ->  IR 8, opset 16  g(x) {W = ...}

The version of the format is never lowered. In version 3 every initializer is listed among the inputs and is a constant all the
same; from version 4 on a listed initializer would be an input with a default, so those leave the list.
"""

from dataclasses import dataclass, field

import onnx
import onnx_ir as ir

from rewrites.analysis.shapes.inference import infer_model
from rewrites.base.errors import MigrationError
from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.context import Context
from rewrites.graph.walk import all_nodes
from rewrites.loops import loops_in, view
from rewrites.loops.own_results import copy_outputs, not_own
from rewrites.migration.operators import Conversion, convert_operators, is_left_standing
from rewrites.migration.scan_8 import LiftedScan, lift_scan_8
from rewrites.migration.unlike_branch_sizes import hide_unlike_sizes
from rewrites.scan_form.axes_in_front import axes_in_front

__all__ = ["Migration", "migrate", "raise_ir_version"]
_UNLISTED_SINCE = 4
_POOLS = ("AveragePool", "LpPool", "MaxPool")
"""onnx infers other sizes for these in some opsets, where they round up."""


@dataclass
class Migration:
    """What became of a model.

    ``source``, ``target``: its opset before and after; ``ir_before``, ``ir_after``: the version of its format.
    ``conversions``: what became of its operators. ``scans``: what became of its opset-8 Scans. ``messages``: what else was done.
    """

    source: int
    target: int
    ir_before: int
    ir_after: int
    conversions: list[Conversion] = field(default_factory=list)
    scans: list[LiftedScan] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)


def migrate(ctx: Context, target: int) -> Migration:
    """Write the model of ``ctx``, which has been prepared, in opset ``target``, in place.

    Raises MigrationError or MalformedLoop where a node cannot be written so; the model is then half migrated.
    """
    model, source = ctx.model, ctx.opset
    _write_plainly(ctx)
    hide_unlike_sizes(ctx, target)
    result = Migration(source, target, model.ir_version, model.ir_version)
    scans = [node for node in loops_in(model.graph) if is_left_standing(node, source, target)]
    _refuse_scans_in_functions(model, target)
    result.conversions = convert_operators(model, target, ctx.names)
    result.scans = [lift_scan_8(node, ctx) for node in scans]
    if any(node.op_type in _POOLS and node.attributes.get_int("ceil_mode", 0) for node in all_nodes(model.graph)):
        infer_model(model)
    raise_ir_version(model)
    result.ir_after = model.ir_version
    return result


def _write_plainly(ctx: Context) -> None:
    """Write loops such that onnxruntime computes what they mean, and lives.

    It computes garbage where the body of a Scan returns one value twice, or an input itself, or a Loop's its step number, and may
    end the process where a Scan has another axis than 0.
    """
    graph = ctx.model.graph
    for node in loops_in(graph):
        loop = view(node, ctx.opset)
        copy_outputs(loop.body, not_own(loop), ctx.names)
    for node in [loop for loop in loops_in(graph) if loop.op_type == "Scan"]:
        patch = axes_in_front(view(node, ctx.opset), ctx)
        if not isinstance(patch, NotApplicable):
            patch.edit()


def _refuse_scans_in_functions(model: ir.Model, target: int) -> None:
    for function in model.functions.values():
        source = function.opset_imports.get("", target)
        for node in all_nodes(function):
            if is_left_standing(node, source, target):
                label = node.name or node.outputs[0].name
                raise MigrationError(
                    f"Scan '{label}' of opset {source} is in the function {function.name}, which cannot be inlined."
                )


def raise_ir_version(model: ir.Model) -> None:
    """Raise the IR version of ``model`` to the least its operator sets and its functions allow."""
    least = max(_least(domain, version) for domain, version in [("", 1), *model.opset_imports.items()])
    if model.ir_version < _UNLISTED_SINCE and any(not value.is_graph_input() for value in model.graph.initializers.values()):
        least = max(least, _UNLISTED_SINCE)
    if model.ir_version >= least:
        return
    if model.ir_version < _UNLISTED_SINCE <= least:
        for graph in model.graphs():
            for value in [value for value in graph.inputs if value.is_initializer()]:
                graph.inputs.remove(value)
    model.ir_version = least


def _least(domain: str, version: int) -> int:
    """Return the IR version of the first release that had this operator set; the oldest where onnx does not know."""
    try:
        return int(onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid(domain, version)], ignore_unknown=True))
    except ValueError:
        return 1
