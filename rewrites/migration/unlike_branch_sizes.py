"""Hide sizes that differ between the branches of an If, before opset 11.

    If (c) then [2, 3] else [n, 3]    ->    If (c) then [?, ?] else [?, ?]

There, onnx asks that both have one shape, and onnxruntime takes a number that one branch declares for both: it folds a Shape of
the result, and lets other operators than an opset-8 Scan write into memory of that size. Sizes that are not known here count as
different, because onnxruntime may infer them.

Works round ORT-IF-10-SIZES.
"""

import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.branches import of_a_size_not_inferred
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import is_one_size, same
from rewrites.graph.walk import all_nodes, node_graphs

__all__ = ["hide_unlike_sizes"]


def hide_unlike_sizes(ctx: Context, target: int) -> None:
    """Let the branches of Ifs hide their sizes if the model goes to an opset in which they may not differ.

    A model that was in one already keeps its Ifs, but for those that hold opset-8 Scans.
    """
    if target >= since.IF_SIZES_APART:
        return
    for node in list(all_nodes(ctx.model.graph)):
        branches = node_graphs(node) if node.op_type == "If" and node.domain == "" else []
        flag = node.inputs[0] if node.inputs else None
        if len(branches) != 2 or flag is None:
            continue
        if ctx.opset < since.IF_SIZES_APART and not any(
            inner.op_type == "Scan" for branch in branches for inner in all_nodes(branch)
        ):
            continue
        for k, results in enumerate(zip(*(branch.outputs for branch in branches), strict=False)):
            if all(isinstance(value.type, ir.TensorType | None) for value in results) and not _are_alike(*results):
                for branch in branches:
                    _hide(ctx, branch, k, flag)


def _are_alike(value: ir.Value, other: ir.Value) -> bool:
    return value.shape is not None and same(value.shape, other.shape) and all(map(is_one_size, value.shape.dims))


def _hide(ctx: Context, branch: ir.Graph, k: int, flag: ir.Value) -> None:
    build = Builder(ctx.names, ctx.constants, {**ctx.model.opset_imports, "": since.IF_SIZES_APART - 1}, ctx.model.ir_version)
    hidden = of_a_size_not_inferred(build, branch.outputs[k], flag)
    branch.extend(build.nodes)
    branch.outputs[k] = hidden
