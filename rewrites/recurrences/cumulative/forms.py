"""What each operator that accumulates becomes for all steps at once, and for which states that is faster than the loop.

Measured on onnxruntime 1.32, one thread: sums and products are 2.5 times faster and more for rows of 2 KiB, whatever is done with
them, 1.3 to 1.9 times for rows of 8 KiB, and as fast for rows of 16 KiB, where the number of steps is not known. Max and Min are
twice as fast for rows of 1 KiB, and as fast for rows of 4 KiB while the stacks stay in the cache; what is chosen by a comparison,
and what was taken on last, as fast for rows of 2 KiB or less.
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

__all__ = ["Form", "form_of"]


@dataclass(frozen=True)
class Form:
    """How states of one kind are computed: by ``place``, of ``types``, from opset ``since`` on.

    ``widest_new``, ``widest_returned``: bytes of a step up to which that is no slower, where the stacks are new, and where the loop
    reads and returns them. ``by_blocks``: the number of steps must be known for more than the last value; ``for_last``: for that,
    too. ``widest_cached``: the same bytes of stacks that stay in the processor's cache; None for any number.
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
_NUMBERS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64})
_GATHERED = _NUMBERS | {ir.DataType.FLOAT16, ir.DataType.UINT8, ir.DataType.INT8, ir.DataType.INT16}
_SUMS = Form("CumSum", place_sums, _NUMBERS, since.CUM_SUM, 8 * _KIB, 8 * _KIB)
_PRODUCTS = Form(
    "CumProd",
    place_sums,
    _NUMBERS | {ir.DataType.UINT32, ir.DataType.UINT64},
    since.CUM_PROD,
    8 * _KIB,
    8 * _KIB,
)
_EXTREMES = Form("blocks of steps", place_extremes, _NUMBERS, since.ALLOWZERO, _KIB, _KIB, by_blocks=True, widest_cached=3 * _KIB)
_CHOICES = replace(_EXTREMES, widest_cached=_KIB)
_LATCHES = Form(
    "the last step that took a value on",
    place_latches,
    _GATHERED,
    since.ALLOWZERO,
    _KIB,
    _KIB,
    by_blocks=True,
    for_last=True,
    widest_cached=_KIB,
)
_FLAGS = Form("counting", place_flags, frozenset({ir.DataType.BOOL}), since.CUM_SUM, 256, 256)
_MEANS = Form("CumSum", place_means, frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE}), since.CUM_SUM, 2 * _KIB, 2 * _KIB)
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


def form_of(total: Accumulation) -> Form:
    """Return what becomes of a state."""
    return _CHOICES if isinstance(total, Choice) else _FORMS[total.op_type]
