"""Three ways to put one row of an opset-8 Scan to use, for all rows.

one row       Squeeze, the row's Scan, Unsqueeze
batched       one Scan whose body works on all rows at once; exact where every operator of the body has a batching rule
row by row    Scan(states, xs) body: the row's Scan        over the rows; always possible
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.batching import Call, Operand, batch
from rewrites.batching.alignment import repeated
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.loops import ScanInput, ScanOutput, make_scan
from rewrites.migration.scan_8.row import Row
from rewrites.ops.versions import squeeze, unsqueeze

__all__ = ["batched", "one_row", "row_by_row"]


def one_row(row: Row, build: Builder) -> list[ir.Value]:
    """Run the row as it is; there is one."""
    for i, stack in enumerate(row.stacks):
        row.node.replace_input_with(i, squeeze(build, stack, [0]))
    build.nodes.append(row.node)
    return [unsqueeze(build, result, [0]) for result in row.results]


def batched(row: Row, rows: ir.Value, build: Builder) -> list[ir.Value] | NotApplicable:
    """Run all rows at once; says why where an operator cannot be batched."""
    operands = tuple(Operand(stack, True, value) for stack, value in zip(row.stacks, row.inputs, strict=True))
    results = batch(Call(row.node, operands, build, rows))
    if isinstance(results, NotApplicable):
        return results
    found = dict(zip(row.node.outputs, results, strict=True))
    return [repeated(build, Operand(found[result].value, found[result].batched, result), rows) for result in row.results]


def row_by_row(row: Row, build: Builder, ctx: Context, hint: str) -> list[ir.Value]:
    """Run one row after the other."""
    outputs = [ScanOutput(result, None) for result in row.results]
    scans = [ScanInput(stack, value) for stack, value in zip(row.stacks, row.inputs, strict=True)]
    body = ir.Graph(_values(scans), [output.inner for output in outputs], nodes=[row.node], name=ctx.names.fresh("row"))
    node = make_scan(ctx.names, body, [], scans, outputs, hint)
    build.nodes.append(node)
    return list(node.outputs)


def _values(scans: Sequence[ScanInput]) -> list[ir.Value]:
    return [scan.inner for scan in scans]
