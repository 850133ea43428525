"""The unrolled steps of a loop become a Scan again.

    h1 = f(h0, x[0]); h2 = f(h1, x[1]); ...; h64 = f(h63, x[63]); ys = Concat(h1, ..., h64)
    ->    h64, ys = Scan(h0, x) body(h, x_t) => f(h, x_t)

At least four steps must run the same operators, and each must read a row of a tensor. Every other operand must be the same value in
all steps, a row or constant that belongs to the step, or a result of the same or the previous step. The first step may differ from
the others, for example because it starts from zeros. It then stays before the Scan. If the Scan brings no gain,
``driver/rolling.py`` lets the steps stay unrolled.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.marks import ROLLED_UP
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import const_array, dim_of
from rewrites.loop_form.written_out.chains import Chain
from rewrites.loop_form.written_out.packs import Column, Constants, Operand, PriorStep, SameStep, Shared
from rewrites.loop_form.written_out.rows import Rows
from rewrites.loops import ScanInput, ScanOutput, State, make_scan
from rewrites.loops.own_results import give_own_nodes
from rewrites.ops.versions import gather, reshape, slice_axis, squeeze, transpose, unsqueeze
from rewrites.ops.versions.attributes import axis_of
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_ALL_BYTES = 1 << 62


@dataclass
class _RolledBody:
    """Builds the body of the Scan. ``inner`` collects its nodes, ``outer`` the nodes before the Scan.

    A column is one value per step. ``values`` maps each column to the body value that replaces it. ``scanned`` maps operands to
    scan inputs. ``states`` maps a column and an initial value to the state that passes the column's values to the next step.
    """

    chain: Chain
    ctx: Context
    outer: Builder
    inner: Builder
    values: dict[Column, ir.Value] = field(default_factory=dict)
    scanned: dict[Operand, ScanInput] = field(default_factory=dict)
    states: dict[tuple[Column, ir.Value], State] = field(default_factory=dict)

    def emit(self) -> None:
        """Emit the nodes of one step, and create the states."""
        previous: dict[tuple[Column, ir.Value], ir.Value] = {}
        for _, operands in self.chain.packs:
            for operand in operands:
                if isinstance(operand, PriorStep) and (operand.column, operand.initial) not in previous:
                    previous[operand.column, operand.initial] = self._new_value_like(operand.column.values[0])
        for pack, operands in self.chain.packs:
            node = pack.nodes[0]
            inputs = [
                previous[operand.column, operand.initial] if isinstance(operand, PriorStep) else self._operand(operand)
                for operand in operands
            ]
            attributes, hint = list(node.attributes.values()), node.outputs[0].name
            results = self.inner.node(node.op_type, inputs, len(node.outputs), attributes, node.domain, hint, node.version)
            for value, column in zip(results, pack.results, strict=True):
                value.type, value.shape = column.values[0].type, column.values[0].shape
                self.values[column] = value
        for (column, initial), value in previous.items():
            rows = None if column.first_row is None else Rows(column.first_row.family, column.first_row.index, False)
            self.states[column, initial] = State(initial, value, self.values[column] if rows is None else self._row(rows), None)

    def _operand(self, operand: Shared | Rows | Constants | SameStep) -> ir.Value | None:
        match operand:
            case Shared():
                return operand.value
            case Rows():
                return self._row(operand)
            case Constants():
                return self._constant(operand)
        return self.values[operand.column]

    def _row(self, rows: Rows) -> ir.Value:
        """Return a body value, read from a scan input, that holds the next of ``rows`` in each step."""
        family, steps = rows.family, self.chain.steps
        if rows not in self.scanned:
            lowest, width = rows.first - (steps - 1 if rows.backwards else 0), family.width or 1
            outer, value = family.source, self._new_value_like(family.source)
            if not isinstance(dim_of(outer, family.axis), int):
                numbers = self.outer.const(np.arange(lowest, lowest + steps))
                outer = gather(self.outer, outer, numbers, family.axis)  # fails on too few rows, as the steps do
            elif lowest or dim_of(outer, family.axis) != steps * width:
                outer = slice_axis(self.outer, outer, family.axis, lowest * width, (lowest + steps) * width)
            dims = list(family.source.shape.dims) if family.source.shape is not None else []
            dims[family.axis : family.axis + 1] = [width] if width > 1 else []
            value.shape = ir.Shape(dims)
            if width > 1:
                dims.insert(family.axis, steps)
                outer = reshape(self.outer, outer, [dim if isinstance(dim, int) else -1 for dim in dims])
            self.scanned[rows] = ScanInput(outer, value, family.axis, rows.backwards != self.chain.backwards)
        row = self.scanned[rows].inner
        return unsqueeze(self.inner, row, [family.axis]) if family.width == 1 else row

    def _constant(self, constants: Constants) -> ir.Value:
        """Return a scan input of the body. In each step, it holds the next of ``constants``."""
        if constants not in self.scanned:
            arrays = [const_array(value, limit=_ALL_BYTES) for value in constants.values]
            stack = self.outer.const(np.stack([array for array in arrays if array is not None]))
            self.scanned[constants] = ScanInput(stack, self._new_value_like(constants.values[0]), 0, self.chain.backwards)
        return self.scanned[constants].inner

    def _new_value_like(self, like: ir.Value) -> ir.Value:
        return ir.Value(name=self.ctx.names.fresh(like.name or "value"), type=like.type, shape=like.shape)


def check(chain: Chain, ctx: Context) -> Patch | NotApplicable:
    """Return a patch, unless many results of steps are read individually. Each such read needs a Gather."""
    chain_nodes = set(chain.nodes)
    gathers = sum(1 for column in _columns(chain) for _ in _read_individually(column, chain, chain_nodes))
    if ctx.opset < since.SCAN or 2 * gathers > len(chain.nodes):
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        scan = _roll_up(chain, ctx)
        ROLLED_UP.put(scan, True)
        return [scan]

    return Patch(f"rolled {chain.steps} steps of {len(chain.packs)} nodes each into a Scan", edit)


def _roll_up(chain: Chain, ctx: Context) -> ir.Node:
    """Replace the steps of ``chain`` by a Scan, sort the graph, and return the Scan."""
    graph, nodes = ctx.model.graph, chain.nodes
    chain_nodes = set(nodes)
    body = _RolledBody(chain, ctx, ctx.builder(), ctx.builder())
    body.emit()
    finals = {
        column: position
        for position, (column, _) in enumerate(body.states)
        if column.pack is not None and not any(_read_individually(column, chain, chain_nodes))
    }
    stacked = [column for column in _columns(chain) if any(_read_outside(column, chain, chain_nodes, skip_last=column in finals))]
    body_graph = ir.Graph([], [], nodes=body.inner.nodes, name=ctx.names.fresh("step"))
    body.inner.nodes = []
    outputs = [ScanOutput(body.values[column], None, 0, chain.backwards) for column in stacked]
    scan = make_scan(ctx.names, body_graph, list(body.states.values()), list(body.scanned.values()), outputs, "steps")
    give_own_nodes(body_graph, ctx.names)
    body.outer.insert_before(nodes[0])
    graph.insert_before(nodes[0], scan)
    for column, position in finals.items():
        for node, index in _individual_uses(chain.last_value(column), chain_nodes):
            node.replace_input_with(index, scan.outputs[position])
        if chain.last_value(column).is_graph_output():
            replace_value(chain.last_value(column), scan.outputs[position], ctx.names)
    for column, stack in zip(stacked, scan.outputs[len(body.states) :], strict=True):
        stack.shape = ir.Shape([chain.steps, *(column.values[0].shape or ())])
        _replace_by_stack(stack, column, chain_nodes, scan, ctx)
    remove_nodes(nodes)
    graph.sort()
    return scan


def _read_individually(column: Column, chain: Chain, chain_nodes: Collection[ir.Node]) -> Iterator[ir.Value]:
    """Yield the values of ``column`` that need a Gather, because nodes other than Concats read them."""
    for value in column.values:
        if value is not chain.last_value(column) and (value.is_graph_output() or any(_individual_uses(value, chain_nodes))):
            yield value


def _individual_uses(value: ir.Value, inside: Collection[ir.Node]) -> Iterator[tuple[ir.Node, int]]:
    """Yield the uses of ``value`` by nodes that are neither in ``inside`` nor a Concat."""
    for node, index in list(value.uses()):
        if node not in inside and not _is_concat(node):
            yield node, index


def _is_concat(node: ir.Node) -> bool:
    return node.op_type == "Concat" and node.domain == ""


def _columns(chain: Chain) -> list[Column]:
    return [column for pack, _ in chain.packs for column in pack.results]


def _read_outside(column: Column, chain: Chain, chain_nodes: Collection[ir.Node], skip_last: bool) -> Iterator[ir.Value]:
    """Yield the values of ``column`` that are read outside the chain.

    ``skip_last``: True to yield the value of the step that runs last only if a Concat reads it.
    """
    for value in column.values:
        if skip_last and value is chain.last_value(column):
            if any(_is_concat(node) for node, _ in value.uses() if node not in chain_nodes):
                yield value
        elif value.is_graph_output() or any(node not in chain_nodes for node, _ in value.uses()):
            yield value


def _replace_by_stack(stack: ir.Value, column: Column, chain_nodes: Collection[ir.Node], scan: ir.Node, ctx: Context) -> None:
    """Let Concats of all values of ``column`` read ``stack``, and other users elements of ``stack``."""
    for node in dict.fromkeys(node for node, _ in column.values[0].uses()):
        if _is_concat(node) and node not in chain_nodes:
            _replace_concat(node, stack, column, scan, ctx)
    for step, value in enumerate(column.values):
        if value.is_graph_output() or any(node not in chain_nodes for node, _ in value.uses()):
            b = ctx.builder()
            element = gather(b, stack, b.const(np.array(step)), 0)
            b.insert_after(scan)
            replace_value(value, element, ctx.names)


def _replace_concat(node: ir.Node, stack: ir.Value, column: Column, scan: ir.Node, ctx: Context) -> None:
    """If the Concat ``node`` joins all values of ``column``, let it read the joined ``stack`` instead."""
    rank, steps, inputs = len(column.values[0].shape or ()), len(column.values), list(node.inputs)
    for values in (list(column.values), list(column.values[::-1])):
        first = inputs.index(values[0]) if values[0] in inputs else len(inputs)
        if inputs[first : first + steps] != values:
            continue
        b = ctx.builder()
        ordered = stack if values[0] is column.values[0] else slice_axis(b, stack, 0, steps - 1, -steps - 1, -1)
        joined = _join_elements(b, ordered, column.values[0], axis_of(node, 0, rank))
        if joined is None:
            b.discard()
            return
        inputs[first : first + steps] = [joined]
        whole = joined if len(inputs) == 1 else b.like(node, inputs)[0]
        b.insert_after(scan)
        replace_value(node.outputs[0], whole, ctx.names)
        remove_nodes([node])
        return


def _join_elements(b: Builder, stack: ir.Value, value: ir.Value, axis: int) -> ir.Value | None:
    """Join the elements of ``stack``, shaped like ``value``, along ``axis``. Return None if impossible."""
    dims = list((value.shape or ir.Shape([])).dims)
    rank, steps, size = len(dims), dim_of(stack, 0), dims[axis]
    moved = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
    if size == 1:
        rows = squeeze(b, stack, [axis + 1])
        return transpose(b, rows, moved[:-1]) if axis else rows
    target = [dim if isinstance(dim, int) else -1 for dim in dims]
    if not isinstance(size, int) or not isinstance(steps, int) or target.count(-1) > 1 or 0 in dims:
        return None
    target[axis] = size * steps
    return reshape(b, transpose(b, stack, moved) if axis else stack, target)


RULE = Rule("roll-up", "loop_form", "written-out steps", check)
