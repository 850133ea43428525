"""How far integers are followed: their number, their size, and what floating-point numbers hold of them."""

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import STEP, Affine

__all__ = ["EXACT", "INTEGERS", "LARGEST", "SLOPE_IN_FLOATS", "constants", "in_type", "within"]

LARGEST = 1 << 13
"""As many elements are followed at most."""

EXACT = {ir.DataType.FLOAT16: 1 << 11, ir.DataType.FLOAT: 1 << 24, ir.DataType.DOUBLE: 1 << 53}
"""Up to what magnitude floating-point numbers hold all integers."""

INTEGERS = {ir.DataType.INT32: 1 << 31, ir.DataType.INT64: 1 << 62}
"""Up to what magnitude constants of a type are followed through calculations."""

SLOPE_IN_FLOATS = 16
"""The greatest change from step to step that is followed in floating-point numbers."""


def constants(array: np.ndarray) -> Affine | None:
    """Return the expression of a constant of integers, or of whole floating-point numbers; None for others."""
    if array.size > LARGEST:
        return None
    if array.dtype.kind == "f" and array.dtype.itemsize >= 2:
        exact = EXACT.get(ir.DataType.from_numpy(array.dtype), 0)
        whole = np.isfinite(array).all() and (array == np.trunc(array)).all() and (abs(array) <= exact).all()
        return (
            Affine(np.vectorize(int, otypes=[object])(array) if array.size else array.astype(object), {}, exact) if whole else None
        )
    return Affine.of(array) if array.dtype in (np.int32, np.int64) else None


def in_type(found: Affine, dtype: ir.DataType | None) -> bool:
    """Whether constants are far from the ends of their type; floating-point numbers leave room for some hundred thousand steps."""
    if dtype in EXACT:
        slopes = found.terms.get(STEP, np.zeros((), object))
        return bool(np.all(abs(found.const) <= EXACT[dtype] >> 2) and np.all(abs(slopes) <= SLOPE_IN_FLOATS))
    return dtype not in INTEGERS or bool(np.all(abs(found.const) < INTEGERS[dtype]))


def within(steps: int, exact_to: int) -> bool:
    """Whether floating-point numbers exact up to ``exact_to`` hold everything that is followed in them for ``steps`` steps."""
    return SLOPE_IN_FLOATS * (steps + 1) <= exact_to - (exact_to >> 2)
