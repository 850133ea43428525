"""With ``fast_math``, computes the distances between scanned rows and the rows of a matrix at once.

    D = Scan(xs) body(x) => ReduceSumSquare(Sub(Y, x), axes = -1)    # xs [T, D], Y [N, D]
    ->    D = com.microsoft.CDist(xs, Y)   if the target has it and the type is float or double
    ->    D = Max(ReduceSumSquare(xs) + ReduceSumSquare(Y) - 2 xs Y^T, 0)   else

The rule needs ``fast_math``, because both new forms compute ``(x - y)^2`` as ``x^2 + y^2 - 2 x y``, which rounds differently. If
two points are close, the relative error of their distance is large. In the body, a ``ReduceSum`` of ``Pow(d, 2)`` or ``Mul(d, d)``
is also recognised.
"""

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.replace import replace_value
from rewrites.graph.values import const_scalar, dim_of, is_read, producer_of, rank_of, static_dims
from rewrites.loops import Loop, LoopView, ScanInput, ScanView, rebuild
from rewrites.ops.versions import axes_of, keepdims, reduce, transpose
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the body sums squared differences between a scanned row and an outer matrix."""
    if isinstance(loop, LoopView) or loop.batched:
        return NOTHING_HERE
    matches = ((node.outputs[0], match) for node in loop.body if (match := _match(node, loop, ctx)) is not None)
    total, match = next(matches, (None, None))
    if total is None or match is None:
        return NOTHING_HERE
    if not ctx.options.fast_math:
        return NotApplicable("FAST-MATH", f"'{total.name}' is a pairwise distance, which --fast-math makes one operator")
    rows, matrix, reverse = match

    def edit() -> list[ir.Node]:
        build = ctx.builder()
        distances = _distances(build, rows, matrix, ctx)
        build.insert_before(loop.node)
        distance_row = ir.Value(name=ctx.names.fresh(f"{total.name}_row"), type=total.type, shape=total.shape)
        replace_value(total, distance_row, ctx.names)
        changed = ScanView.of(loop.node, ctx.opset)
        return [rebuild(changed, ctx.names, scan_inputs=[*changed.scan_inputs, ScanInput(distances, distance_row, 0, reverse)])]

    return Patch(f"computed the pairwise distances '{total.name}' at once", edit)


def _match(node: ir.Node, loop: Loop, ctx: Context) -> tuple[ir.Value, ir.Value, bool] | None:
    """Match a node that sums the squared differences of a scanned row [D] and a matrix [N, D] along D.

    Returns:
        A tuple (scanned rows [T, D], matrix, True if the rows are scanned in reverse), or None if the node does not match.
    """
    producer, total = producer_of(_squared_value(node), "Sub"), node.outputs[0]
    if producer is None or not is_read(total) or rank_of(total) != 1:
        return None
    if keepdims(node) or axes_of(node, ctx.opset, 2) != (1,) or total.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        return None
    inside = set(loop.body.inputs) | {value for inner in loop.body for value in inner.outputs}
    scanned = {scan.inner: scan for scan in loop.scan_inputs}
    for row, matrix in (producer.inputs, reversed(producer.inputs)):
        if row is None or matrix is None or matrix in inside or rank_of(matrix) != 2:
            continue
        origin = _without_unsqueeze(row)
        scan = scanned.get(origin)
        if scan is not None and scan.axis == 0 and static_dims(origin) == (dim_of(matrix, 1),):
            return scan.outer, matrix, scan.reverse
    return None


def _squared_value(node: ir.Node) -> ir.Value | None:
    """Return x if ``node`` sums the squares of x, else None."""
    if node.domain != "" or node.op_type not in ("ReduceSum", "ReduceSumSquare"):
        return None
    if node.op_type == "ReduceSumSquare":
        return node.inputs[0]
    square = producer_of(node.inputs[0], "Mul", "Pow")
    if square is None:
        return None
    factor, other = square.inputs
    return factor if (const_scalar(other) == 2 if square.op_type == "Pow" else factor is other) else None


def _without_unsqueeze(value: ir.Value) -> ir.Value:
    """Return ``x`` if ``value`` is an Unsqueeze of ``x`` [D] to [1, D], else ``value``.

    The Unsqueeze can be skipped, because [D] and [1, D] broadcast equally.
    """
    producer, dims = producer_of(value, "Unsqueeze"), static_dims(value)
    source = None if producer is None else producer.inputs[0]
    return source if source is not None and dims is not None and len(dims) == 2 and dims[0] == 1 else value


def _distances(build: Builder, rows: ir.Value, matrix: ir.Value, ctx: Context) -> ir.Value:
    """Emit the squared distances between ``rows`` [T, D] and the rows of ``matrix`` [N, D], as [T, N]."""
    if "com.microsoft" in ctx.options.domains:
        ctx.model.opset_imports.setdefault("com.microsoft", 1)
        result = build.op("CDist", rows, matrix, domain="com.microsoft", metric="sqeuclidean")
        result.type = rows.type
        result.shape = ir.Shape([dim_of(rows, 0), dim_of(matrix, 0)])
        return result
    assert rows.dtype is not None
    dtype = rows.dtype.numpy()
    row_squares = reduce(build, "ReduceSumSquare", rows, [1], True)
    squares = build.op("Add", row_squares, reduce(build, "ReduceSumSquare", matrix, [1], False))
    product = build.op("MatMul", rows, transpose(build, matrix, [1, 0]))
    twice = build.op("Mul", product, build.const(np.array(2, dtype)))
    return build.op("Max", build.op("Sub", squares, twice), build.const(np.array(0, dtype)))


RULE = Rule("pairwise-distance", "scan_form", "loop", check, computes="distances between the rows of two matrices")
