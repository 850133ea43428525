"""Operators of onnx's reference that are put right: what it computes otherwise than their text, refuses, or takes that is no input.

Erf in float32 for float64    LRN over batches in the place of channels    OneHot with a depth of shape [1]
Softsign of a scalar          TopK of -1, or of two numbers

Works round ONNX-REFERENCE-OPERATORS.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from onnx.reference.op_run import OpRun

__all__ = ["corrected_operators"]


def corrected_operators() -> "list[type[OpRun]]":
    """Return them as ``ReferenceEvaluator`` takes them."""
    from onnx.reference.op_run import OpRun

    class Erf(OpRun):
        def _run(self, x: np.ndarray) -> tuple[np.ndarray]:
            return (np.vectorize(math.erf, otypes=[np.float64])(x).astype(x.dtype).reshape(x.shape),)

    class LRN(OpRun):
        def _run(
            self, x: np.ndarray, alpha: float = 0.0001, beta: float = 0.75, bias: float = 1.0, size: int = 1
        ) -> tuple[np.ndarray]:
            channels, before, after = x.shape[1], (size - 1) // 2, size // 2
            sums = [(x[:, max(0, c - before) : c + after + 1] ** 2).sum(1) for c in range(channels)]
            sums_of_squares = np.stack(sums, 1) if sums else x
            return ((x / (bias + alpha / size * sums_of_squares) ** beta).astype(x.dtype),)

    class OneHot(OpRun):
        def _run(self, indices: np.ndarray, depth: np.ndarray, values: np.ndarray, axis: int = -1) -> tuple[np.ndarray]:
            count = int(_only_number(depth, "depth"))
            if count < 1:
                raise ValueError(f"depth is {count}, which is below 1")
            places = indices.astype(np.int64)[..., None]
            on = np.where(places < 0, places + count, places) == np.arange(count)
            return (np.moveaxis(np.where(on, values[1], values[0]).astype(values.dtype), -1, axis),)

    class Softsign(OpRun):
        def _run(self, x: np.ndarray) -> tuple[np.ndarray]:
            return (np.asarray(x / (1 + np.abs(x)), x.dtype),)

    class TopK(OpRun):
        def _run(self, x: np.ndarray, k: np.ndarray, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Any, Any]:
            count, size = int(_only_number(k, "k")), x.shape[axis]
            if not 0 <= count <= size:
                raise ValueError(f"k is {count}, which is not from 0 to {size}")
            if largest:
                order = size - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
            else:
                order = np.argsort(x, axis, kind="stable")
            first = np.take(order, np.arange(count), axis).astype(np.int64)
            return np.take_along_axis(x, first, axis), first

    return [Erf, LRN, OneHot, Softsign, TopK]


def _only_number(value: np.ndarray, name: str) -> Any:
    if value.size != 1:
        raise ValueError(f"{name} has {value.size} numbers, not one")
    return value.reshape(-1)[0]
