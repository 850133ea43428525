"""How many steps a block has, and whether doing them block by block is faster than the loop.

The first step of every block is done at once, then the second of every block, and so on; the last states of the blocks are a
recurrence again, of fewer steps. All of that goes over the stack of states some times, which is dearer than the loop's own way
over it where the stack does not fit the processor's second cache.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from rewrites.base.abilities import Costs
from rewrites.base.not_applicable import NotApplicable

__all__ = ["Levels", "choose_levels", "least_steps", "steps_unknown", "too_slow"]

_NEAR, _FAR = 1 << 18, 1 << 22
"""Bytes of a stack up to which all stacks stay in the processor's second cache, and beyond which they leave the third."""
_NEAR_PASSES, _PASSES, _FAR_PASSES = 6, 5, 7
_IN_LOOP = 0.6
"""The part of what a byte takes in a loop whose stacks stay in the second cache."""
_MARGIN = 1.2
_MOST = 16
_LONGEST = 18
_USUAL, _MOST_LEAST = 1 << 12, 512
"""How many steps are assumed, and from how many on a form is to pay at the latest, where their number is not known."""
_ENDS = 6
"""Operators before and after the blocks."""


@dataclass(frozen=True)
class Levels:
    """``radices``: the steps of a block, of a block of blocks, and so on; their product is how many rows there are in all."""

    radices: tuple[int, ...]
    operators: int

    @property
    def rows(self) -> int:
        """The number of rows."""
        return _product(self.radices)


def _product(numbers: tuple[int, ...]) -> int:
    return numbers[0] * _product(numbers[1:]) if numbers else 1


@lru_cache(maxsize=4096)
def choose_levels(rows: int) -> Levels:
    """Return the levels with the fewest operators for ``rows`` rows or a few more."""
    if rows <= 1:
        return Levels((), 0)
    best: Levels | None = None
    for radix in range(2, min(rows, _MOST) + 1):
        blocks = -(-rows // radix)
        rest = choose_levels(blocks)
        operators = 2 * radix + 1 + rest.operators + (5 if blocks > 1 else 0)
        found = Levels((radix, *rest.radices), operators)
        if found.rows * 8 <= rows * 9 + 64 and (best is None or operators < best.operators):
            best = found
    assert best is not None
    return best


def least_steps(usual: int | None, first: int, pays: Callable[[int], bool]) -> int | None:
    """Return from how many steps on, ``first`` or more, a form pays; None where it does not for the ``usual`` number."""
    most = usual or _USUAL
    few = (first << power for power in range(_LONGEST))
    return next((count for count in few if count <= min(most, _MOST_LEAST) and pays(count)), None) if pays(most) else None


def steps_unknown(pays: Callable[[int], bool]) -> NotApplicable:
    """Return the reason for a number of steps that is not known, and from how many on they are done sooner, as ``pays`` tells."""
    found = next((1 << power for power in range(1, _LONGEST) if pays(1 << power)), None)
    ahead = "" if found is None else f"; for {found} or more blocks of steps would be faster, by an estimate"
    return NotApplicable("LINEAR-STEPS", f"how many steps there are is not known before the model runs{ahead}")


def too_slow(levels: Levels, states: int, steps: int, nodes: int, step_bytes: int, costs: Costs) -> NotApplicable | None:
    """Return a reason where ``levels`` take longer than the loop, of ``nodes`` nodes; ``step_bytes``: of its ``states`` states."""
    size = levels.rows * step_bytes
    loop = costs.loop_ns(steps, nodes, round(step_bytes * _IN_LOOP) if steps * step_bytes <= 2 * _NEAR else step_bytes)
    passes = _NEAR_PASSES * costs.near_byte if size <= _NEAR else (_PASSES if size <= _FAR else _FAR_PASSES) * costs.far_byte
    blocks = costs.operator * states * (levels.operators + _ENDS) + size * passes
    if blocks * _MARGIN < loop:
        return None
    took = f"take about {loop / 1000:.0f} µs in the loop and {blocks / 1000:.0f} µs without"
    return NotApplicable("COST-LINEAR", f"{steps} steps with states of {step_bytes} bytes {took}")
