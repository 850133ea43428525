"""Einsum of a constant and a varying value: an affine map of its features.

bi,oi->bo    with a constant o x i matrix    ->    x @ matrix.T
"""

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from rewrites.recurrences.cells.features import Features
from rewrites.recurrences.cells.polynomial import Polynomial
from rewrites.recurrences.cells.reading import Meaning, Reading

__all__ = ["EINSUM"]

_SPARE = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _einsum(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    equation = node.attributes.get_string("equation", "").replace(" ", "")
    meanings = [reading.meaning(value) for value in node.inputs]
    if len(meanings) != 2 or "->" not in equation or "." in equation or equation != equation.lower():
        return None
    terms, result = equation.split("->")
    one, other = terms.split(",")
    if isinstance(meanings[0], np.ndarray):
        one, other = other, one
        meanings.reverse()
    x, matrix = meanings
    if not isinstance(x, Features) or not isinstance(matrix, np.ndarray) or matrix.dtype.kind != "f":
        return None
    lead, own = one[: x.lead], one[x.lead :]
    rest = result[x.lead :]
    if result[: x.lead] != lead or set(lead) & set(other) or len(set(one)) != len(one) or not rest:
        return None
    copies = dict(zip(own, _SPARE, strict=False))
    taken = "".join(copies[letter] for letter in own)
    unit = np.eye(x.width).reshape(*x.shape, *x.shape)
    mapping = np.einsum(f"{taken}{own},{other}->{taken}{rest}", unit, matrix.astype(np.float64))
    affine = reading.as_source(x).times(mapping.reshape(x.width, -1))
    return [Features(x.dims, tuple(mapping.shape[len(own) :]), (Polynomial(affine),))]


EINSUM: dict[str, Callable[[Reading, ir.Node], Sequence[Meaning] | None]] = {"Einsum": _einsum}
