"""Writes a whole model in another opset: converts its operators and replaces its opset-8 Scans.

    IR 3, opset 16  g(x, W) {W = ...}  ->  IR 8, opset 16  g(x) {W = ...}

The IR version is never lowered. In IR version 3, every initializer is also listed as an input, but counts as a constant. From
version 4 on, an initializer that is listed as an input is the default value of a real input. So if a model of version 3 gets a
later version, its initializers are removed from its inputs.

Works around ORT-IF-10-SIZES.
"""

from collections import Counter
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir

from rewrites.analysis.shapes.inference import infer_model
from rewrites.base import since
from rewrites.base.errors import MigrationError
from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.branches import of_a_size_not_inferred
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import is_one_size, same
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import loops_in, view
from rewrites.loops.own_results import copy_outputs, wrongly_computed_outputs
from rewrites.migration.operators import Conversion, convert_operators, is_scan_8_to_lift
from rewrites.migration.scan_8 import LiftedScan, lift_scan_8
from rewrites.scan_form.axes_in_front import move_scan_axes_to_front

__all__ = ["Migration", "migrate", "raise_ir_version"]

_UNLISTED_SINCE = 4
_POOLS = ("AveragePool", "LpPool", "MaxPool")
"""Operators for which the inferred sizes depend on the opset if they round sizes up (``ceil_mode``)."""


@dataclass
class Migration:
    """The changes that a migration from opset ``source`` to ``target`` made to a model.

    ``operators``: the number of nodes of each type before the migration. ``messages``: descriptions of the changes that no other
    field describes.
    """

    source: int
    target: int
    ir_before: int
    ir_after: int
    conversions: list[Conversion] = field(default_factory=list)
    scans: list[LiftedScan] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    operators: Counter[str] = field(default_factory=Counter)


def migrate(ctx: Context, target: int) -> Migration:
    """Migrate the prepared model of ``ctx`` to opset ``target``, in place.

    Raises:
        MigrationError: A node cannot be converted; the model is then partly migrated.
        MalformedLoop: A loop is malformed; the model is then partly migrated.
    """
    model, source = ctx.model, ctx.opset
    _rewrite_loops_ort_runs_wrongly(ctx)
    _hide_differing_sizes(ctx, target)
    result = Migration(source, target, model.ir_version, model.ir_version)
    scans = [node for node in loops_in(model.graph) if is_scan_8_to_lift(node, source, target)]
    _refuse_scans_in_functions(model, target)
    result.conversions = convert_operators(model, target, ctx.names)
    result.scans = [lift_scan_8(node, ctx) for node in scans]
    if any(node.op_type in _POOLS and node.attributes.get_int("ceil_mode", 0) for node in all_nodes(model.graph)):
        infer_model(model)
    raise_ir_version(model)
    result.ir_after = model.ir_version
    return result


def _rewrite_loops_ort_runs_wrongly(ctx: Context) -> None:
    """Rewrite the loops that onnxruntime computes incorrectly, or on which it may crash.

    onnxruntime returns wrong numbers if a Scan body returns one value twice or returns an input, or if a Loop body returns its step
    number. It may crash on a Scan with an axis other than 0.
    """
    graph = ctx.model.graph
    for node in loops_in(graph):
        loop = view(node, ctx.opset)
        copy_outputs(loop.body, wrongly_computed_outputs(loop), ctx.names)
    for node in [loop for loop in loops_in(graph) if loop.op_type == "Scan"]:
        patch = move_scan_axes_to_front(view(node, ctx.opset), ctx)
        if not isinstance(patch, NotApplicable):
            patch.edit()


def _hide_differing_sizes(ctx: Context, target: int) -> None:
    """Hide the sizes of an If's result from shape inference if the two branches may return other sizes.

        If (c) then [2, 3] else [n, 3]    ->    If (c) then [?, ?] else [?, ?]

    This is necessary only if ``target`` is below opset 11, where onnx requires one shape for both branches. If onnxruntime knows a
    size in one branch, it assumes this size for both: it computes a Shape of the result in advance, and reserves memory of this
    size.

    Unknown sizes count as different, because onnxruntime may infer them. If the model itself is below opset 11, only Ifs that
    contain Scans change.
    """
    if target >= since.IF_SIZES_APART:
        return
    for node in list(all_nodes(ctx.model.graph)):
        branches = node_graphs(node) if node.op_type == "If" and node.domain == "" else []
        flag = node.inputs[0] if node.inputs else None
        if len(branches) != 2 or flag is None:
            continue
        holds_scans = any(inner.op_type == "Scan" for branch in branches for inner in all_nodes(branch))
        if ctx.opset < since.IF_SIZES_APART and not holds_scans:
            continue
        for k, results in enumerate(zip(*(branch.outputs for branch in branches), strict=False)):
            if all(isinstance(value.type, ir.TensorType | None) for value in results) and not _have_equal_sizes(*results):
                for branch in branches:
                    _hide_sizes_of_output(ctx, branch, k, flag)


def _have_equal_sizes(value: ir.Value, other: ir.Value) -> bool:
    return value.shape is not None and same(value.shape, other.shape) and all(map(is_one_size, value.shape.dims))


def _hide_sizes_of_output(ctx: Context, branch: ir.Graph, k: int, flag: ir.Value) -> None:
    build = Builder(ctx.names, ctx.constants, {**ctx.model.opset_imports, "": since.IF_SIZES_APART - 1}, ctx.model.ir_version)
    hidden = of_a_size_not_inferred(build, branch.outputs[k], flag)
    build.append_to(branch)
    branch.outputs[k] = hidden


def _refuse_scans_in_functions(model: ir.Model, target: int) -> None:
    for function in model.functions.values():
        source = function.opset_imports.get("", target)
        for node in all_nodes(function):
            if is_scan_8_to_lift(node, source, target):
                scan = f"Scan '{node.name or node.outputs[0].name}' of opset {source}"
                raise MigrationError(f"{scan} is in the function {function.name}, which cannot be inlined.")


def raise_ir_version(model: ir.Model) -> None:
    """Raise the IR version of ``model`` to the lowest that supports its operator sets and initializers.

    A higher IR version stays. If the version rises from 3, initializers are removed from the inputs.
    """
    lowest = max(_min_ir_version(domain, version) for domain, version in [("", 1), *model.opset_imports.items()])
    if model.ir_version < _UNLISTED_SINCE and any(not value.is_graph_input() for value in model.graph.initializers.values()):
        lowest = max(lowest, _UNLISTED_SINCE)
    if model.ir_version >= lowest:
        return
    if model.ir_version < _UNLISTED_SINCE <= lowest:
        for graph in model.graphs():
            for value in [value for value in graph.inputs if value.is_initializer()]:
                graph.inputs.remove(value)
    model.ir_version = lowest


def _min_ir_version(domain: str, version: int) -> int:
    """Return the lowest IR version that supports ``version`` of the operator set ``domain``.

    Return 1 if onnx does not know the domain or the version.
    """
    try:
        return int(onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid(domain, version)], ignore_unknown=True))
    except ValueError:
        return 1
