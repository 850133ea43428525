"""How many states a loop operator cannot do without."""

from rewrites.graph.context import Context
from rewrites.loops import Loop, LoopView

__all__ = ["fewest_states"]


_STATELESS_LOOPS_SINCE = 11


def fewest_states(loop: Loop, ctx: Context) -> int:
    """Return the number of states that the operator cannot do without."""
    return int(isinstance(loop, LoopView) and ctx.opset < _STATELESS_LOOPS_SINCE)
