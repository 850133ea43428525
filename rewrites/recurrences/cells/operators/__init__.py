"""How each operator of a body is read: from its type to a function that returns the abstract values of its outputs, or None.

An operator is read exactly or not at all; what a cell is made of is ``families``'.
"""

from collections.abc import Callable, Sequence

import onnx_ir as ir

from rewrites.recurrences.cells.operators.activations import ACTIVATIONS
from rewrites.recurrences.cells.operators.arithmetic import ARITHMETIC
from rewrites.recurrences.cells.operators.choices import read_choice
from rewrites.recurrences.cells.operators.einsum import EINSUM
from rewrites.recurrences.cells.operators.flipped import read_flipped
from rewrites.recurrences.cells.operators.movement import MOVEMENT
from rewrites.recurrences.cells.operators.products import PRODUCTS
from rewrites.recurrences.cells.operators.single_steps import SINGLE_STEPS
from rewrites.recurrences.cells.reading import Meaning, Reading

__all__ = ["OPERATORS", "read_choice", "read_flipped"]

OPERATORS: dict[str, Callable[[Reading, ir.Node], Sequence[Meaning] | None]] = {
    **ACTIVATIONS,
    **ARITHMETIC,
    **EINSUM,
    **MOVEMENT,
    **PRODUCTS,
    **SINGLE_STEPS,
}
