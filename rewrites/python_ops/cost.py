"""What a call of Python costs, in words for the report. Measured with onnxruntime 1.31 and onnxruntime-extensions 0.15."""

import math
from collections.abc import Sequence

__all__ = ["cost_of"]

_CALL_US = 60
_ELEMENT_NS = 3


def cost_of(shapes: Sequence[Sequence[int] | None], assumed: int) -> str:
    """Say what one call costs at least, beside what it computes: results of ``shapes``, None where one is not known."""
    elements = sum(assumed if dims is None else math.prod(dims) for dims in shapes)
    total = _CALL_US + elements * _ELEMENT_NS / 1000
    each = f"{_CALL_US} us, and {_ELEMENT_NS} ns for each of about {elements} numbers it gives"
    return f"each call costs {total:.0f} us at least ({each})"
