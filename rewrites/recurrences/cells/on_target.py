"""Whether the target of a model runs a native node at all, in the form that a cell needs."""

from rewrites.analysis.unroll_limits import node_too_long, too_long
from rewrites.base.abilities import Abilities
from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.context import Context
from rewrites.loops import Loop
from rewrites.ops.rnn.functions import DEFAULTS
from rewrites.recurrences.cells.cell import Cell

__all__ = ["not_there", "stays_on_cpu"]


def not_there(cell: Cell, has_lengths: bool, target: Abilities) -> NotApplicable | None:
    """Return a reason where ``target`` does not run the native node of ``cell``, or not in the form it would have.

    ``has_lengths``: whether each row of the batch has a length of its own.
    """
    limits = target.recurrent.get(cell.op_type)
    if limits is None:
        return NotApplicable("CELL-TARGET", f"{target.name} has no {cell.op_type}")
    lacks = limits.lacking(
        activations=tuple(function.name for function in cell.functions) != DEFAULTS[cell.op_type],
        clip=cell.clip is not None,
        peepholes=cell.peepholes is not None,
        input_forget=cell.input_forget,
        reset_before=cell.op_type == "GRU" and not cell.linear_before_reset,
        lengths=has_lengths,
    )
    return NotApplicable("CELL-TARGET", f"{target.name} runs no {cell.op_type} with {lacks}") if lacks else None


def stays_on_cpu(loop: Loop, ctx: Context) -> bool:
    """Whether the target sends ``loop`` back to onnxruntime's CPU, native or not: it runs no loops, and none can be unrolled."""
    if ctx.options.target.loops:
        return False
    steps = loop.steps
    if not isinstance(steps, int):
        return True
    return too_long(loop, steps, (), ctx) is not None and node_too_long(steps, 1, ctx.options.unroll) is not None
