"""Read products by constant matrices as linear maps.

    h @ W
    Transpose(Gemm(W, Transpose(h)))    = h @ W.T
    Einsum<bi,oi->bo>(h, W)             = h @ W.T

If the operand h is not a linear map of sources, h becomes a new source.

The number of features of h may be a symbol. A product h @ W then shows that the symbol equals the first size of W. This conclusion
is not drawn if a leading axis of a state or scanned tensor has the same symbol, because some exporters use one symbol for all free
sizes.

    LSTM(Unsqueeze(x), W, R, B, , Unsqueeze(h), Unsqueeze(c))    is read as the polynomials of its equations

For a cell inside a loop, TorchScript writes an RNN, GRU or LSTM node of one step. Such a node is read only if it has one direction,
constant weights, no sequence lengths and ``layout`` 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.values import dim_of, shape_dims
from rewrites.ops.rnn.functions import Function
from rewrites.ops.rnn.recurrent_node import GATES, read
from rewrites.recurrences.cells.equations import Equations
from rewrites.recurrences.cells.features import Features, same_lead
from rewrites.recurrences.cells.polynomial import Polynomial
from rewrites.recurrences.cells.reading import AbstractValue, OperatorReader, Reading, Transposed

__all__ = ["PRODUCTS"]


_SPARE = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _matmul(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    left, right = (reading.abstract(value) for value in node.inputs)
    if left is None and isinstance(right, np.ndarray) and right.ndim > 1:
        _learn_width(reading, node.inputs[0], right.shape[-2])
    product: Features | None = None
    if isinstance(left, Features) and isinstance(right, np.ndarray):
        product = _apply_matrix(reading, left, right)
    elif isinstance(left, np.ndarray) and isinstance(right, Features) and left.ndim == 2 and right.lead == 0:
        product = _apply_matrix(reading, right, left.T)
    return _matrix_product(reading, node) if product is None else [product]


def _gemm(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    x, matrix = reading.features(node.inputs[0]), reading.abstract(node.inputs[1])
    if x is None and isinstance(matrix, np.ndarray) and matrix.ndim == 2 and not node.attributes.get_int("transA", 0):
        _learn_width(reading, node.inputs[0], matrix.shape[1 if node.attributes.get_int("transB", 0) else 0])
    return _matrix_product(reading, node)


def _apply_matrix(reading: Reading, x: Features, matrix: np.ndarray) -> Features | None:
    """Return ``x @ matrix``, or None if ``matrix`` does not fit the features of ``x``."""
    if matrix.dtype.kind != "f" or len(x.shape) != 1 or matrix.ndim < 2 or any(size != 1 for size in matrix.shape[:-2]):
        return None
    if matrix.shape[-2] != x.width or matrix.ndim - 1 > max(x.lead, 1) + 1 or (matrix.ndim > 2 and matrix.ndim - 2 > x.lead - 1):
        return None
    affine = reading.as_source(x).times(matrix.reshape(matrix.shape[-2:]).astype(np.float64))
    return Features(x.dims, (affine.width,), (Polynomial(affine),))


def _learn_width(reading: Reading, x: ir.Value | None, width: int) -> None:
    dim = None if x is None else dim_of(x, -1)
    outer = [*(state.initial for state in reading.loop.states), *(scan.outer for scan in reading.loop.scan_inputs)]
    row_names = {name for value in outer if value.shape is not None for name in shape_dims(value.shape)[:-1]}
    if isinstance(dim, str) and dim not in row_names:
        reading.learn_same(dim, width)


def _oriented(abstract: AbstractValue, transpose: bool) -> AbstractValue:
    """Return ``abstract``, transposed if ``transpose`` is True; None if ``abstract`` is no matrix."""
    if isinstance(abstract, np.ndarray):
        return (abstract.T if transpose else abstract) if abstract.ndim == 2 else None
    if isinstance(abstract, Transposed):
        return abstract.features if transpose else abstract
    if abstract is None or not abstract.is_matrix:
        return None
    return Transposed(abstract) if transpose else abstract


def _matrix_product(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    """Read a MatMul or Gemm of two matrices, one of them constant. Add the third operand of a Gemm."""
    operands = [reading.abstract(value) for value in node.inputs]
    pairs = zip(operands[:2], ("transA", "transB"), strict=True)
    left, right = (_oriented(operand, node.attributes.get_int(name, 0) != 0) for operand, name in pairs)
    factor, beta = node.attributes.get_float("alpha", 1.0), node.attributes.get_float("beta", 1.0)
    addend = operands[2] if len(operands) > 2 and beta != 0 else None
    if left is None or right is None or (addend is None and beta != 0 and any(value is not None for value in node.inputs[2:])):
        return None
    product, is_transposed = None, isinstance(left, np.ndarray)
    if isinstance(left, np.ndarray) and isinstance(right, Transposed):
        product = _apply_matrix(reading, right.features, left.T * factor)
    elif isinstance(left, Features) and isinstance(right, np.ndarray):
        product = _apply_matrix(reading, left, right * factor)
    if product is not None and addend is not None:
        product = _with_addend(product, is_transposed, addend, beta)
    return None if product is None else [Transposed(product) if is_transposed else product]


def _with_addend(product: Features, is_transposed: bool, addend: AbstractValue, beta: float) -> Features | None:
    if isinstance(addend, np.ndarray):
        numbers = addend.reshape((1,) * (2 - addend.ndim) + addend.shape)
        numbers = numbers.T if is_transposed else numbers
        if numbers.ndim > 2 or numbers.shape[0] != 1:
            return None
        bias = Polynomial.constant(np.broadcast_to(numbers[0].astype(np.float64) * beta, (product.width,)))
        return product.mapped(lambda run: run + bias)
    rows = addend.features if isinstance(addend, Transposed) and is_transposed else None if is_transposed else addend
    if not isinstance(rows, Features) or rows.shape != product.shape or rows.lead > 1:
        return None
    if rows.dims != product.dims and (is_transposed or not same_lead(rows, product)):
        return None
    return product.combined(rows.mapped(lambda run: run * beta), Polynomial.__add__)


def _einsum(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    equation = node.attributes.get_string("equation", "").replace(" ", "")
    operands = [reading.abstract(value) for value in node.inputs]
    if len(operands) != 2 or "->" not in equation or "." in equation or equation != equation.lower():
        return None
    terms, result = equation.split("->")
    letters, matrix_letters = terms.split(",")
    if isinstance(operands[0], np.ndarray):
        letters, matrix_letters = matrix_letters, letters
        operands.reverse()
    x, matrix = operands
    if not isinstance(x, Features) or not isinstance(matrix, np.ndarray) or matrix.dtype.kind != "f":
        return None
    lead, own = letters[: x.lead], letters[x.lead :]
    rest = result[x.lead :]
    if result[: x.lead] != lead or set(lead) & set(matrix_letters) or len(set(letters)) != len(letters) or not rest:
        return None
    copies = _SPARE[: len(own)]
    unit = np.eye(x.width).reshape(*x.shape, *x.shape)
    mapping = np.einsum(f"{copies}{own},{matrix_letters}->{copies}{rest}", unit, matrix.astype(np.float64))
    affine = reading.as_source(x).times(mapping.reshape(x.width, -1))
    return [Features(x.dims, tuple(mapping.shape[len(own) :]), (Polynomial(affine),))]


_OPERANDS = ("X", "W", "R", "B", "initial_h", "initial_c", "P")


def _single_step(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    view = read(node)
    if isinstance(view, NotApplicable) or view.directions != 1 or view.batch_first or view.input("sequence_lens") is not None:
        return None
    operands = {name: reading.abstract(view.input(name)) for name in _OPERANDS}
    if any(operand is None and view.input(name) is not None for name, operand in operands.items()):
        return None
    x, size = operands["X"], view.hidden
    w, r, bias, peepholes = (_array(operands[name]) for name in ("W", "R", "B", "P"))
    if not isinstance(x, Features) or w is None or r is None or x.lead != 2 or x.dims[0] != 1 or len(x.shape) != 1:
        return None
    if r.shape != (GATES[view.kind] * size, size) or w.shape != (len(r), x.width):
        return None
    h, c = (_state(operands[name], x, size) for name in ("initial_h", "initial_c"))
    if h is None or c is None:
        return None
    wb, rb = np.split(np.zeros(2 * len(w)) if bias is None else bias, 2)
    # the output activation of an LSTM is not clipped
    functions = (replace(function, clip=view.clip if which < 2 else None) for which, function in enumerate(view.functions[0]))
    equations = Equations(
        op_type=view.kind,
        w=w,
        r=r,
        wb=wb,
        rb=rb,
        functions=tuple(functions),
        peepholes=peepholes,
        linear_before_reset=view.linear_before_reset,
        input_forget=view.input_forget,
    )
    states = equations.step(_PolynomialAlgebra(reading), x.whole() or Polynomial(reading.as_source(x)), h, c)
    outputs = [Features((1, *x.dims), (size,), (states[0],)), *(Features(x.dims, (size,), (state,)) for state in states)]
    return outputs[: len(node.outputs)]


def _array(operand: AbstractValue) -> np.ndarray | None:
    """Return the constant ``operand`` without its first axis, the axis of directions.

    Return None if ``operand`` is not constant or has more than one direction.
    """
    return operand[0].astype(np.float64) if isinstance(operand, np.ndarray) and len(operand) == 1 else None


def _state(operand: AbstractValue, x: Features, size: int) -> Polynomial | None:
    """Read an initial state [1, rows, size] as a polynomial. An absent state counts as zeros.

    ``x``: the features of the input, with the same leading axes. Return None if the state cannot be read.
    """
    if operand is None:
        return Polynomial.constant(np.zeros(size))
    if isinstance(operand, np.ndarray):
        return Polynomial.constant(np.broadcast_to(operand.reshape(-1), (size,))) if operand.size in (1, size) else None
    if not isinstance(operand, Features) or operand.shape != (size,) or not same_lead(operand, x):
        return None
    return operand.whole()


@dataclass(frozen=True)
class _PolynomialAlgebra:
    """Evaluates the equations of a recurrent operator on polynomials.

    If an activation or a product of activations is multiplied by a matrix, it becomes a new source in ``reading``.
    """

    reading: Reading

    def linear(self, x: Polynomial, matrix: np.ndarray, bias: np.ndarray) -> Polynomial:
        source = self.reading.as_source(Features((), (x.width,), (x,)))
        return Polynomial(source.times(matrix.T)) + Polynomial.constant(bias)

    def apply(self, function: Function, x: Polynomial) -> Polynomial:
        clip, plain = function.clip, replace(function, clip=None)
        bounded = x if clip is None else Polynomial.activation(Function("Clip", -clip, clip), x)
        if function.name == "Affine":
            return bounded * function.alpha + function.beta
        if function.name == "ScaledTanh":
            return Polynomial.activation(Function("Tanh"), bounded * function.beta) * function.alpha
        return Polynomial.activation(plain, bounded)


PRODUCTS: Mapping[str, OperatorReader] = {
    "Einsum": _einsum,
    "Gemm": _gemm,
    "MatMul": _matmul,
    **dict.fromkeys(GATES, _single_step),
}
