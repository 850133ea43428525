"""Compare the results of two models."""

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["assert_same_numbers", "drawn"]

_LEAST_TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2}


def assert_same_numbers(
    actual: Sequence[Any], expected: Sequence[Any], rtol: float = 1e-5, atol: float = 1e-6, why: str = ""
) -> None:
    """Assert equal counts, types and shapes, floats within the tolerance (wider for 16-bit floats), and all other values equal."""
    assert len(actual) == len(expected), f"{why}{len(actual)} values, expected {len(expected)}"
    for position, (a, e) in enumerate(zip(actual, expected, strict=True)):
        where = f"{why}output {position}: "
        if isinstance(e, list):
            assert isinstance(a, list), f"{where}a tensor, expected a sequence"
            assert_same_numbers(a, e, rtol, atol, where)
            continue
        assert a.dtype == e.dtype, f"{where}type {a.dtype}, expected {e.dtype}"
        assert a.shape == e.shape, f"{where}shape {a.shape}, expected {e.shape}"
        if e.dtype.kind in "OSU" or e.dtype.kind in "biu":
            np.testing.assert_array_equal(a, e, err_msg=where)
        else:
            least = _LEAST_TOLERANCE.get(e.dtype.name, 0.0)
            wide = np.complex128 if e.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(a.astype(wide), e.astype(wide), max(rtol, least), max(atol, least), err_msg=where)


def drawn(seed: int = 0, **shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Return an array of normally distributed floats for each name and shape, determined by the seed."""
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
