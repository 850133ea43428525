"""The body of a Scan that does what each of some steps does that are written out, and what the Scan is given."""

from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import const_array, dim_of
from rewrites.loop_form.written_out.chains import Chain
from rewrites.loop_form.written_out.operands import Before, Constants, Operand, Shared
from rewrites.loop_form.written_out.packs import Column
from rewrites.loop_form.written_out.rows import Rows
from rewrites.loops import ScanInput, State
from rewrites.ops.versions import gather, reshape, slice_axis, unsqueeze

__all__ = ["RolledBody"]

_ALL_BYTES = 1 << 62


@dataclass
class RolledBody:
    """``outer`` makes what the Scan is given, ``inner`` the nodes of one step.

    ``of``: what stands for a column in the body; ``states``: by the column that is handed on, and its initial value.
    """

    chain: Chain
    ctx: Context
    outer: Builder
    inner: Builder
    of: dict[Column, ir.Value] = field(default_factory=dict)
    scanned: dict[Operand, ScanInput] = field(default_factory=dict)
    states: dict[tuple[Column, ir.Value], State] = field(default_factory=dict)

    def write(self) -> None:
        """Make the nodes."""
        waiting: dict[tuple[Column, ir.Value], ir.Value] = {}
        for _, operands in self.chain.packs:
            for one in operands:
                if isinstance(one, Before) and (one.column, one.initial) not in waiting:
                    waiting[one.column, one.initial] = self._new(one.column.values[0])
        for pack, operands in self.chain.packs:
            node = pack.nodes[0]
            given = [waiting[one.column, one.initial] if isinstance(one, Before) else self._given(one) for one in operands]
            attributes = list(node.attributes.values())
            made = self.inner.node(
                node.op_type, given, len(node.outputs), attributes, node.domain, node.outputs[0].name, node.version
            )
            for value, column in zip(made, pack.results, strict=True):
                value.type, value.shape = column.values[0].type, column.values[0].shape
                self.of[column] = value
        for (column, initial), value in waiting.items():
            self.states[column, initial] = State(initial, value, self._next(column), None)

    def _given(self, one: Operand) -> ir.Value | None:
        if isinstance(one, Shared):
            return one.value
        if isinstance(one, Rows):
            return self._row(one)
        if isinstance(one, Constants):
            return self._constant(one)
        return self.of[one.column]

    def _next(self, column: Column) -> ir.Value:
        if column.first is None:
            return self.of[column]
        return self._row(Rows(column.first.family, column.first.index, False))

    def _row(self, rows: Rows) -> ir.Value:
        """Return the row of this step."""
        family, steps = rows.family, self.chain.steps
        if rows not in self.scanned:
            least, width = rows.first - (steps - 1 if rows.falling else 0), family.width or 1
            outer, value = family.source, self._new(family.source)
            if not isinstance(dim_of(outer, family.axis), int):
                numbers = self.outer.const(np.arange(least, least + steps))
                outer = gather(self.outer, outer, numbers, family.axis)  # which is refused where there are fewer, as the steps are
            elif least or dim_of(outer, family.axis) != steps * width:
                outer = slice_axis(self.outer, outer, family.axis, least * width, (least + steps) * width)
            dims = list(family.source.shape.dims) if family.source.shape is not None else []
            dims[family.axis : family.axis + 1] = [width] if width > 1 else []
            value.shape = ir.Shape(dims)
            if width > 1:
                dims.insert(family.axis, steps)
                outer = reshape(self.outer, outer, [dim if isinstance(dim, int) else -1 for dim in dims])
            self.scanned[rows] = ScanInput(outer, value, family.axis, rows.falling != self.chain.falling)
        row = self.scanned[rows].inner
        return unsqueeze(self.inner, row, [family.axis]) if family.width == 1 else row

    def _constant(self, constants: Constants) -> ir.Value:
        """Return the constant of this step."""
        if constants not in self.scanned:
            arrays = [const_array(value, limit=_ALL_BYTES) for value in constants.values]
            stack = self.outer.const(np.stack([array for array in arrays if array is not None]))
            self.scanned[constants] = ScanInput(stack, self._new(constants.values[0]), 0, self.chain.falling)
        return self.scanned[constants].inner

    def _new(self, like: ir.Value) -> ir.Value:
        return ir.Value(name=self.ctx.names.fresh(like.name or "value"), type=like.type, shape=like.shape)
