"""How many states a loop operator cannot do without."""

from rewrites.base import since
from rewrites.graph.context import Context
from rewrites.loops import Loop, LoopView

__all__ = ["fewest_states"]


def fewest_states(loop: Loop, ctx: Context) -> int:
    """Return the number of states that the operator cannot do without."""
    return int(isinstance(loop, LoopView) and ctx.opset < since.STATELESS_LOOPS)
