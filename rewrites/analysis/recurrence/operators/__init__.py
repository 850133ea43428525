"""How each operator of a body is read: from its type to a function that returns the abstract values of its outputs, or None.

An operator is read exactly or not at all; what a cell is made of is ``families``'.
"""

from collections.abc import Callable, Sequence

import onnx_ir as ir

from rewrites.analysis.recurrence.operators.activations import ACTIVATIONS
from rewrites.analysis.recurrence.operators.arithmetic import ARITHMETIC
from rewrites.analysis.recurrence.operators.choices import read_choice
from rewrites.analysis.recurrence.operators.einsum import EINSUM
from rewrites.analysis.recurrence.operators.flipped import read_flipped
from rewrites.analysis.recurrence.operators.movement import MOVEMENT
from rewrites.analysis.recurrence.operators.products import PRODUCTS
from rewrites.analysis.recurrence.operators.single_steps import SINGLE_STEPS
from rewrites.analysis.recurrence.reading import Meaning, Reading

__all__ = ["OPERATORS", "read_choice", "read_flipped"]

OPERATORS: dict[str, Callable[[Reading, ir.Node], Sequence[Meaning] | None]] = {
    **ACTIVATIONS,
    **ARITHMETIC,
    **EINSUM,
    **MOVEMENT,
    **PRODUCTS,
    **SINGLE_STEPS,
}
