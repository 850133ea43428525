"""How each operator of a body is read: from its type to a function that returns the abstract values of its outputs, or None.

An operator is read exactly or not at all.
"""

from collections.abc import Mapping

from rewrites.recurrences.cells.operators.constant_products import PRODUCTS
from rewrites.recurrences.cells.operators.elementwise import ELEMENTWISE
from rewrites.recurrences.cells.operators.feature_moves import MOVEMENT
from rewrites.recurrences.cells.reading import OperatorReader

__all__ = ["OPERATORS"]

OPERATORS: Mapping[str, OperatorReader] = {**ELEMENTWISE, **MOVEMENT, **PRODUCTS}
