"""Values that hold features along axis 0 and rows along axis 1: what bodies compute with weights on the left of a product.

Transpose(Gemm(W, Transpose(h)))    is    h @ W.T
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from rewrites.ops.movement import movement
from rewrites.ops.versions import perm_of
from rewrites.recurrences.cells.features import Features
from rewrites.recurrences.cells.operators.activations import ACTIVATIONS
from rewrites.recurrences.cells.operators.arithmetic import ARITHMETIC
from rewrites.recurrences.cells.operators.products import apply_matrix
from rewrites.recurrences.cells.polynomial import Polynomial
from rewrites.recurrences.cells.reading import Flipped, Meaning, Reading

__all__ = ["read_flipped"]


def read_flipped(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    """Read a node of which an operand or the result is flipped; None where it is not understood."""
    operands = [reading.meaning(value) for value in node.inputs]
    if node.op_type in ("MatMul", "Gemm"):
        return _product(node, operands, reading)
    first = operands[0] if operands else None
    if node.op_type == "Transpose":
        return _transpose(node, first)
    if not any(isinstance(operand, Flipped) for operand in operands):
        return None
    if node.op_type in ACTIVATIONS or node.op_type in ARITHMETIC:
        return _elementwise(reading, node)
    if not isinstance(first, Flipped):
        return None
    if node.op_type in ("Cast", "Identity"):
        return [first] if node.op_type == "Identity" or _keeps_type(node) else None
    return _moved(reading, node, operands)


def _moved(reading: Reading, node: ir.Node, operands: Sequence[Meaning]) -> Sequence[Meaning] | None:
    """Read a node that moves features along axis 0 and leaves the rows as they are."""
    parts = [one.features for one in (operands if node.op_type == "Concat" else operands[:1]) if isinstance(one, Flipped)]
    x = parts[0]
    move = movement(node, reading.opset, (x.width, *x.dims), lambda index: None)
    whole = all(part.dims == x.dims for part in parts) and (node.op_type != "Concat" or len(parts) == len(operands))
    if move is None or not whole or move.axes != (0, 1) or not move.cut <= {0}:
        return None
    starts = np.cumsum([0, *(part.width for part in parts)])
    made = move.make([np.arange(part.width)[:, None] + start for part, start in zip(parts, starts, strict=False)])
    every = replace(x, shape=(int(starts[-1]),), runs=tuple(run for part in parts for run in part.runs))
    return [Flipped(every.taken(index[:, 0])) for index in made]


def _keeps_type(node: ir.Node) -> bool:
    source = node.inputs[0]
    return source is not None and source.dtype is not None and node.attributes.get_int("to", 0) == int(source.dtype)


def _is_rows(features: object) -> bool:
    return isinstance(features, Features) and features.lead == 1 and len(features.shape) == 1


def _transpose(node: ir.Node, x: Meaning) -> Sequence[Meaning] | None:
    if isinstance(x, Features) and _is_rows(x) and list(perm_of(node, 2)) == [1, 0]:
        return [Flipped(x)]
    if isinstance(x, Flipped):
        return [x.features if list(perm_of(node, 2)) == [1, 0] else x]
    return None


def _elementwise(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    """Read the node on flipped operands as it is read on others."""
    turned: dict[ir.Value, Meaning] = {}
    for value in node.inputs:
        meaning = reading.meaning(value)
        if value is None:
            continue
        if isinstance(meaning, Flipped):
            turned[value] = meaning.features
        elif isinstance(meaning, np.ndarray) and (meaning.ndim == 2 or meaning.size == 1):
            turned[value] = meaning.T
        else:
            return None
    with reading.believing(turned):
        found = (ACTIVATIONS | ARITHMETIC)[node.op_type](reading, node)
    return None if found is None else [Flipped(each) if isinstance(each, Features) and _is_rows(each) else None for each in found]


@dataclass(frozen=True)
class _Side:
    """One factor: a constant matrix, or rows; ``columns`` where it stands with its rows along axis 1."""

    matrix: np.ndarray | None
    rows: Features | None
    columns: bool


def _side(meaning: Meaning, transposed: bool) -> _Side | None:
    if isinstance(meaning, np.ndarray):
        return _Side(meaning.T if transposed else meaning, None, False) if meaning.ndim == 2 else None
    if isinstance(meaning, Flipped):
        return _Side(None, meaning.features, not transposed)
    return _Side(None, meaning, transposed) if isinstance(meaning, Features) and _is_rows(meaning) else None


def _product(node: ir.Node, operands: Sequence[Meaning], reading: Reading) -> Sequence[Meaning] | None:
    left, right = (
        _side(operand, node.attributes.get_int(name, 0) != 0)
        for operand, name in zip(operands[:2], ("transA", "transB"), strict=True)
    )
    if left is None or right is None:
        return None
    found: Meaning = None
    factor, beta = node.attributes.get_float("alpha", 1.0), node.attributes.get_float("beta", 1.0)
    added = operands[2] if len(operands) > 2 and beta != 0 else None
    if added is None and beta != 0 and any(value is not None for value in node.inputs[2:]):
        return None
    if left.matrix is not None and right.rows is not None and right.columns:
        (found,) = apply_matrix(reading, right.rows, left.matrix.T * factor) or [None]
        flipped = True
    elif left.rows is not None and not left.columns and right.matrix is not None:
        (found,) = apply_matrix(reading, left.rows, right.matrix * factor) or [None]
        flipped = False
    if not isinstance(found, Features):
        return None
    return _with_addend(found, flipped, added, beta)


def _with_addend(found: Features, flipped: bool, addend: Meaning, beta: float) -> Sequence[Meaning] | None:
    if addend is not None:
        if isinstance(addend, np.ndarray) and addend.ndim <= 2:
            numbers = addend.reshape((1,) * (2 - addend.ndim) + addend.shape)
            numbers = numbers.T if flipped else numbers
            if numbers.shape[0] != 1:
                return None
            wide = np.broadcast_to(numbers[0].astype(np.float64) * beta, (found.width,))
            found = found.mapped(lambda run: run.plus(Polynomial.constant(wide)))
        else:
            other = addend.features if isinstance(addend, Flipped) and flipped else addend if not flipped else None
            if not isinstance(other, Features) or other.dims != found.dims or other.shape != found.shape:
                return None
            found = found.combined(other.mapped(lambda run: run.scaled(beta)), Polynomial.plus)
    return [Flipped(found) if flipped else found]
