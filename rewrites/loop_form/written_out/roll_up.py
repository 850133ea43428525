"""Puts a Scan in the place of steps that are written out, and the parts of its results in the place of theirs."""

from collections.abc import Collection, Iterator

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import dim_of
from rewrites.loop_form.written_out.chains import Chain
from rewrites.loop_form.written_out.packs import Column
from rewrites.loop_form.written_out.rolled_body import RolledBody
from rewrites.loops import ScanOutput, make_scan
from rewrites.loops.own_results import give_own_nodes
from rewrites.ops.versions import gather, reshape, slice_axis, squeeze, transpose
from rewrites.ops.versions.attributes import axis_of

__all__ = ["read_apart", "roll_up"]


def roll_up(chain: Chain, ctx: Context) -> ir.Node:
    """Make the Scan, let all that read results of the steps read its own, and remove the steps. The graph is sorted anew."""
    graph, nodes = ctx.model.graph, chain.nodes
    inside = set(nodes)
    body = RolledBody(chain, ctx, ctx.builder(), ctx.builder())
    body.write()
    finals = {
        column: place
        for place, (column, _) in enumerate(body.states)
        if column.pack is not None and not any(_read_alone(column, chain, inside))
    }
    stacked = [column for column in _columns(chain) if any(_read_of(column, chain, inside, but_last=column in finals))]
    inner = ir.Graph([], [], nodes=body.inner.nodes, name=ctx.names.fresh("step"))
    body.inner.nodes = []
    outputs = [ScanOutput(body.of[column], None, 0, chain.falling) for column in stacked]
    scan = make_scan(ctx.names, inner, list(body.states.values()), list(body.scanned.values()), outputs, "steps")
    give_own_nodes(inner, ctx.names)
    body.outer.insert_before(nodes[0])
    graph.insert_before(nodes[0], scan)
    for column, place in finals.items():
        for node, index in _alone(chain.last(column), inside):
            node.replace_input_with(index, scan.outputs[place])
        if chain.last(column).is_graph_output():
            replace_value(chain.last(column), scan.outputs[place], ctx.names)
    for column, stack in zip(stacked, scan.outputs[len(body.states) :], strict=True):
        stack.shape = ir.Shape([chain.steps, *(column.values[0].shape or ())])
        _put_stack(stack, column, inside, scan, ctx)
    remove_nodes(nodes)
    graph.sort()
    return scan


def read_apart(chain: Chain) -> int:
    """Count the values that are read outside each on its own, which need a Gather each, and results of single steps."""
    inside = set(chain.nodes)
    return sum(1 for column in _columns(chain) for _ in _read_alone(column, chain, inside))


def _columns(chain: Chain) -> list[Column]:
    return [column for pack, _ in chain.packs for column in pack.results]


def _read_of(column: Column, chain: Chain, inside: Collection[ir.Node], but_last: bool) -> Iterator[ir.Value]:
    """Yield the values of ``column`` for which its stack is needed."""
    for value in column.values:
        if but_last and value is chain.last(column):
            if any(_is_joining(node) for node, _ in value.uses() if node not in inside):
                yield value
        elif value.is_graph_output() or any(node not in inside for node, _ in value.uses()):
            yield value


def _read_alone(column: Column, chain: Chain, inside: Collection[ir.Node]) -> Iterator[ir.Value]:
    """Yield the values of ``column`` but the last that something outside reads without all others."""
    for value in column.values:
        if value is not chain.last(column) and (value.is_graph_output() or any(_alone(value, inside))):
            yield value


def _alone(value: ir.Value, inside: Collection[ir.Node]) -> Iterator[tuple[ir.Node, int]]:
    """Yield where ``value`` is read outside by what takes no whole stack."""
    for node, index in list(value.uses()):
        if node not in inside and not _is_joining(node):
            yield node, index


def _is_joining(node: ir.Node) -> bool:
    return node.op_type == "Concat" and node.domain == ""


def _put_stack(stack: ir.Value, column: Column, inside: Collection[ir.Node], scan: ir.Node, ctx: Context) -> None:
    """Let what reads the values of ``column`` read ``stack``: a Concat of all the whole of it, others an element each."""
    for node in dict.fromkeys(node for node, _ in column.values[0].uses()):
        if _is_joining(node) and node not in inside:
            _join(node, stack, column, scan, ctx)
    for step, value in enumerate(column.values):
        if value.is_graph_output() or any(node not in inside for node, _ in value.uses()):
            b = ctx.builder()
            element = gather(b, stack, b.const(np.array(step)), 0)
            b.insert_after(scan)
            replace_value(value, element, ctx.names)


def _join(node: ir.Node, stack: ir.Value, column: Column, scan: ir.Node, ctx: Context) -> None:
    """Let a Concat that has all values of ``column`` one after the other have what the stack makes of them."""
    rank, steps, given = len(column.values[0].shape or ()), len(column.values), list(node.inputs)
    for values in (list(column.values), list(column.values[::-1])):
        first = given.index(values[0]) if values[0] in given else len(given)
        if given[first : first + steps] != values:
            continue
        b = ctx.builder()
        ordered = stack if values[0] is column.values[0] else slice_axis(b, stack, 0, steps - 1, -steps - 1, -1)
        joined = _side_by_side(b, ordered, column.values[0], axis_of(node, 0, rank))
        if joined is None:
            b.discard()
            return
        given[first : first + steps] = [joined]
        whole = joined if len(given) == 1 else b.like(node, given)[0]
        b.insert_after(scan)
        replace_value(node.outputs[0], whole, ctx.names)
        remove_nodes([node])
        return


def _side_by_side(b: Builder, stack: ir.Value, value: ir.Value, axis: int) -> ir.Value | None:
    """Return what a Concat along ``axis`` makes of the elements of ``stack``, each like ``value``; None for unknown sizes."""
    dims = list((value.shape or ir.Shape([])).dims)
    rank, steps, size = len(dims), dim_of(stack, 0), dims[axis]
    moved = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
    if size == 1:
        rows = squeeze(b, stack, [axis + 1])
        return transpose(b, rows, moved[:-1]) if axis else rows
    open_at = [place for place, dim in enumerate(dims) if not isinstance(dim, int)]
    if not isinstance(size, int) or not isinstance(steps, int) or len(open_at) > 1 or 0 in dims:
        return None
    target = [-1 if not isinstance(dim, int) else dim for dim in dims]
    target[axis] = size * steps
    return reshape(b, transpose(b, stack, moved) if axis else stack, target)
