"""Whether the target of a model runs a native node at all, in the form that a cell needs."""

from rewrites.abilities import Abilities
from rewrites.context import Context
from rewrites.loops import Loop
from rewrites.not_applicable import NotApplicable
from rewrites.recurrences.cell import Cell
from rewrites.recurrences.functions import DEFAULTS
from rewrites.unrolling.limits import node_too_long, too_long

__all__ = ["ON_CPU", "not_there", "stays_on_cpu"]

ON_CPU = "which runs on onnxruntime's CPU"
"""What a patch says of a node that the target does not run."""


def not_there(cell: Cell, has_lengths: bool, target: Abilities) -> NotApplicable | None:
    """Say so where ``target`` does not run the native node of ``cell``, or not in the form it would have.

    ``has_lengths``: whether each row of the batch has a length of its own.
    """
    limits = target.recurrent.get(cell.op_type)
    if limits is None:
        return NotApplicable("CELL-TARGET", f"{target.name} has no {cell.op_type}")
    usual = tuple(function.name for function in cell.functions) == DEFAULTS[cell.op_type]
    missing = [
        (limits.lengths or not has_lengths, "rows of their own lengths"),
        (limits.activations or usual, "activations other than the usual ones"),
        (limits.clip or cell.clip is None, "clipped gates"),
        (limits.peepholes or cell.peepholes is None, "peepholes"),
        (limits.input_forget or not cell.input_forget, "coupled gates"),
        (limits.reset_before or cell.op_type != "GRU" or cell.linear_before_reset, "a reset gate before the product"),
    ]
    lacks = [what for fine, what in missing if not fine]
    return NotApplicable("CELL-TARGET", f"{target.name} runs no {cell.op_type} with {lacks[0]}") if lacks else None


def stays_on_cpu(loop: Loop, ctx: Context) -> bool:
    """Whether the target sends ``loop`` back to onnxruntime's CPU, native or not: it runs no loops, and none can be written out."""
    if ctx.options.target.loops:
        return False
    steps = loop.steps
    if not isinstance(steps, int):
        return True
    return too_long(loop, steps, (), ctx) is not None and node_too_long(steps, 1, ctx.options.unroll) is not None
