"""How each operator of a body is read: (operator type) to a function that gives the meanings of its outputs, or None."""

from collections.abc import Callable, Sequence

import onnx_ir as ir

from rewrites.recurrences.operators.activations import ACTIVATIONS
from rewrites.recurrences.operators.arithmetic import ARITHMETIC
from rewrites.recurrences.operators.choices import read_choice
from rewrites.recurrences.operators.einsum import EINSUM
from rewrites.recurrences.operators.flipped import read_flipped
from rewrites.recurrences.operators.movement import MOVEMENT
from rewrites.recurrences.operators.products import PRODUCTS
from rewrites.recurrences.operators.single_steps import SINGLE_STEPS
from rewrites.recurrences.reading import Meaning, Reading

__all__ = ["OPERATORS", "read_choice", "read_flipped"]

OPERATORS: dict[str, Callable[[Reading, ir.Node], Sequence[Meaning] | None]] = {
    **ACTIVATIONS,
    **ARITHMETIC,
    **EINSUM,
    **MOVEMENT,
    **PRODUCTS,
    **SINGLE_STEPS,
}
