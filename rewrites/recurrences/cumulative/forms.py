"""The form for all steps of each operator that accumulates, and for which states that is faster than the loop.

Measured on onnxruntime 1.32, one thread. Sums and products are at least 2.5 times faster for rows of 2 KiB, 1.3 to 1.9 times for
rows of 8 KiB, and as fast for rows of 16 KiB, if the number of steps is unknown. Max and Min are twice as fast for rows of 1 KiB,
and as fast for rows of 4 KiB while the stacks stay in the cache. Choices by a comparison, and latches, are as fast up to 2 KiB.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import onnx_ir as ir

from rewrites.base import since
from rewrites.base.not_applicable import NotApplicable
from rewrites.fission.stacks import Stacks
from rewrites.recurrences.cumulative.accumulation import Accumulation, Choice
from rewrites.recurrences.cumulative.prefix_choices import place_extremes, place_latches
from rewrites.recurrences.cumulative.prefix_sums import place_flags, place_means, place_sums, starts_neutral
from rewrites.recurrences.results import StateUse

__all__ = ["PrefixForm", "form_of"]


@dataclass(frozen=True)
class PrefixForm:
    """How states of one kind are computed: by ``place``, of ``types``, from opset ``since`` on.

    Args:
        widest_new: The bytes of a step up to which the form is no slower, if the stacks are new.
        widest_returned: The same if the loop reads and returns the stacks.
        by_blocks: The number of steps must be known for more than the last value.
        for_last: It must be known for the last value, too.
        widest_cached: The bytes of a step whose stacks stay in the processor's cache; None for any number.
    """

    name: str
    place: Callable[[Stacks, Any, StateUse], ir.Value | NotApplicable | None]
    types: frozenset[ir.DataType]
    since: int
    widest_new: int
    widest_returned: int
    by_blocks: bool = False
    for_last: bool = False
    widest_cached: int | None = None

    @property
    def loses_when_wide(self) -> bool:
        """Return True if wide steps cost several times what the loop costs: CumSum and CumProd lose at most about a half."""
        return self.place not in (place_sums, place_means)

    def widest(self, total: Accumulation, returned: bool) -> int | None:
        """Return how many bytes a step of the state may have; None for any number."""
        if returned and self.place is place_sums and starts_neutral(total):
            return None
        return self.widest_returned if returned else self.widest_new


_KIB = 1 << 10
_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})
_NUMBERS = _FLOATS | {ir.DataType.INT32, ir.DataType.INT64}
_UNSIGNED = frozenset({ir.DataType.UINT32, ir.DataType.UINT64})
_SMALL = frozenset({ir.DataType.FLOAT16, ir.DataType.UINT8, ir.DataType.INT8, ir.DataType.INT16})
_SUMS = PrefixForm("CumSum", place_sums, _NUMBERS, since.CUM_SUM, 8 * _KIB, 8 * _KIB)
_PRODUCTS = replace(_SUMS, name="CumProd", types=_NUMBERS | _UNSIGNED, since=since.CUM_PROD)
_MEANS = PrefixForm("CumSum", place_means, _FLOATS, since.CUM_SUM, 2 * _KIB, 2 * _KIB)
_FLAGS = PrefixForm("counting", place_flags, frozenset({ir.DataType.BOOL}), since.CUM_SUM, 256, 256)
_CHOICES = PrefixForm("blocks of steps", place_extremes, _NUMBERS, since.ALLOWZERO, _KIB, _KIB, True, widest_cached=_KIB)
_EXTREMES = replace(_CHOICES, widest_cached=3 * _KIB)
_LATCH_TYPES, _LATCH_NAME = _NUMBERS | _SMALL, "the last step that took a value on"
_LATCHES = replace(_CHOICES, name=_LATCH_NAME, place=place_latches, types=_LATCH_TYPES, for_last=True)
_FORMS = {
    "Add": _SUMS,
    "Sub": _SUMS,
    "Mul": _PRODUCTS,
    "Max": _EXTREMES,
    "Min": _EXTREMES,
    "And": _FLAGS,
    "Or": _FLAGS,
    "Latch": _LATCHES,
    "Mean": _MEANS,
}


def form_of(total: Accumulation) -> PrefixForm:
    """Return what becomes of a state."""
    return _CHOICES if isinstance(total, Choice) else _FORMS[total.op_type]
