"""Finds sizes of values outside a loop that the first inference left open.

Shapes computed from other shapes (``Expand``, ``ConstantOfShape``, ``Reshape`` to a ``Concat`` of dimensions) are read as affine
expressions; what a Scan gives has the sizes its body gives; all else is inferred again, from what is known now.
"""

from collections.abc import Iterable
from functools import partial

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import Affine, Dim
from rewrites.analysis.induction.integers import Integers
from rewrites.analysis.shapes.bodies import out_of_scan
from rewrites.base.postorder import postorder
from rewrites.graph.context import Context
from rewrites.graph.dims import is_vague, refined
from rewrites.graph.node_inference import told_anew
from rewrites.graph.values import shape_dims
from rewrites.loops import ScanView, is_loop, view
from rewrites.ops.versions import DYNAMIC, slice_range, slice_spec

__all__ = ["dims_said_by", "infer_sharply", "sharpen", "size_said_by"]

_SHAPED_BY = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1}
_TO_THE_END = (1 << 31) - 1


def sharpen(values: Iterable[ir.Value], ctx: Context) -> dict[ir.Value, ir.Shape | None]:
    """Look again at how ``values`` are made; return those on the way whose shape is better known now, with what it was."""
    changed: dict[ir.Value, ir.Shape | None] = {}
    for node in _makers(values):
        for value in node.outputs:
            shape = value.shape
            if is_vague(shape):
                value.shape = refined(shape, _again(node, value, ctx))
                if value.shape != shape:
                    changed.setdefault(value, shape)
    return changed


def dims_said_by(sizes: Affine | None) -> list[int | str | None] | None:
    """Return the dimensions that a vector of sizes says: numbers, symbols, or None for what is neither."""
    if sizes is None or sizes.const.ndim != 1:
        return None
    return [size_said_by(sizes.moved(partial(np.take, indices=i))) for i in range(sizes.const.size)]


def size_said_by(one: Affine) -> int | str | None:
    """Return the dimension that an integer says, as ``dims_said_by`` does."""
    symbols = list(one.terms)
    alone = len(symbols) == 1 and one.factor(symbols[0]) == 1 and not one.const.item()
    key = symbols[0].key if alone and isinstance(symbols[0], Dim) else None
    return one.number if one.number is not None else key if isinstance(key, str) else None


def _makers(values: Iterable[ir.Value]) -> list[ir.Node]:
    """Return the nodes of the backward slice of ``values`` whose shapes are not known fully, those that others read first."""
    return postorder(_made_vaguely(values), lambda node: _made_vaguely(node.inputs))


def _made_vaguely(values: Iterable[ir.Value | None]) -> list[ir.Node]:
    return [maker for value in values if value is not None and is_vague(value.shape) and (maker := value.producer()) is not None]


def _again(node: ir.Node, value: ir.Value, ctx: Context) -> ir.Shape | None:
    if is_loop(node):
        loop = view(node, ctx.opset)
        return out_of_scan(loop, named=True)[value] if isinstance(loop, ScanView) and not loop.batched else None
    return told_anew(node, lambda node: infer_sharply(node, ctx, Integers(ctx.opset)))[value]


def infer_sharply(node: ir.Node, ctx: Context, integers: Integers) -> None:
    """Infer the shapes of ``node``'s results, where onnx leaves sizes open with the help of ``integers``."""
    ctx.infer(node)
    if node.domain != "" or not node.outputs:
        return
    result, dims = node.outputs[0], None
    if result.shape is not None and not is_vague(result.shape):
        return
    if node.op_type in _SHAPED_BY and len(node.inputs) > _SHAPED_BY[node.op_type]:
        dims = dims_said_by(integers.of(node.inputs[_SHAPED_BY[node.op_type]]))
        dims = dims if dims is not None and _is_whole(node, dims) else None
    elif node.op_type == "Slice":
        dims = _of_slice(node, ctx)
    if dims is not None:
        result.shape = refined(result.shape, ir.Shape(dims))


def _of_slice(node: ir.Node, ctx: Context) -> list[int | str | None] | None:
    """Return the sizes of a Slice that takes axes of open size as they are."""
    source = node.inputs[0]
    if source is None or source.shape is None:
        return None
    spec = slice_spec(node, ctx.opset, len(source.shape))
    dims = shape_dims(source.shape)
    if spec is DYNAMIC or not set(spec.axes) <= set(range(len(dims))) or 0 in spec.steps:
        return None
    if len({len(part) for part in (spec.starts, spec.ends, spec.axes, spec.steps)}) > 1:
        return None
    for start, end, axis, step in zip(spec.starts, spec.ends, spec.axes, spec.steps, strict=True):
        dim = dims[axis]
        if isinstance(dim, int):
            dims[axis] = len(slice_range(start, end, step, dim))
        elif (start, step) != (0, 1) or end < _TO_THE_END:
            dims[axis] = None
    return dims


def _is_whole(node: ir.Node, dims: list[int | str | None]) -> bool:
    """Whether a node gives just these sizes: a Reshape without 0 and -1, an Expand of axes of size 1."""
    if node.op_type == "Reshape":  # a size that is not known might be 0, which copies another
        return all(isinstance(dim, int) and dim > 0 for dim in dims)
    if node.op_type == "ConstantOfShape":
        return True
    source = node.inputs[0]
    given = None if source is None or source.shape is None else shape_dims(source.shape)
    if given is None or len(given) > len(dims):
        return False
    aligned = zip(reversed(given), reversed(dims), strict=False)
    return all(dim == 1 or (dim is not None and dim == full) for dim, full in aligned)
