"""Describes two successive products by constant matrices, and computes the product that joins them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dataflow import Domain
from rewrites.base import since
from rewrites.base.postorder import postorder
from rewrites.graph.context import Context
from rewrites.graph.values import const_array, dim_of, is_constant, rank_of, static_dims
from rewrites.loops import Loop, LoopView
from rewrites.ops.versions import axis_of
from rewrites.rule import NotApplicable

__all__ = ["JoinedConstants", "ProductChain", "constant_product", "infinity_obstacle", "join_constants"]

_MOST_BYTES = 1 << 26
_MOST_CANCELLED = 256
_KEEP_INFINITE = frozenset({"Add", "Sub", "Mul", "Identity"})
_MATRIX = 2
_FAR_FROM_OVERFLOW = 1e30


@dataclass(frozen=True)
class ConstantProduct:
    """A product ``scale`` * ``operand`` @ ``matrix``, perhaps plus ``addend_scale`` * ``addend``.

    ``on_left``: the product is ``matrix`` @ ``operand`` instead. ``transposed``, ``operand_transposed``: the matrix or the operand
    is transposed before the product. ``in_size``: the size of the matrix along the axis over which the product sums. ``out_size``:
    its other size.
    """

    node: ir.Node
    operand: ir.Value
    matrix: ir.Value
    on_left: bool
    in_size: int
    out_size: int
    transposed: bool = False
    operand_transposed: bool = False
    scale: float = 1.0
    addend: ir.Value | None = None
    addend_scale: float = 1.0

    @property
    def result(self) -> ir.Value:
        """Return the value that the node computes."""
        return self.node.outputs[0]

    def weights(self) -> np.ndarray | None:
        """Return ``scale`` * ``matrix`` as [in_size, out_size], floats as float64; None if it is too large."""
        array = const_array(self.matrix, limit=_MOST_BYTES)
        if array is None:
            return None
        array = array.T if self.transposed != self.on_left else array
        return array.astype(np.float64) * self.scale if array.dtype.kind == "f" else array


@dataclass(frozen=True)
class ProductChain:
    """Two products: ``second`` multiplies the result of ``first``, to which ``add`` may add ``addend``."""

    first: ConstantProduct
    second: ConstantProduct
    add: ir.Node | None
    addend: ir.Value | None


@dataclass(frozen=True)
class JoinedConstants:
    """The constants of the product that replaces a chain: its matrix ``weights``, and its ``addend``."""

    weights: np.ndarray
    addend: np.ndarray | None


def join_constants(chain: ProductChain, ctx: Context) -> JoinedConstants | NotApplicable | None:
    """Return the constants of the joined product, or a reason if its result could differ too much.

    Return None if the constants are too large or the shapes do not fit.
    """
    first, second, dtype = chain.first, chain.second, chain.second.result.dtype
    a, b, c = first.weights(), second.weights(), _addend_array(chain)
    if a is None or b is None or dtype is None or (c is None and _addend(chain) is not None):
        return None
    names = f"'{first.matrix.name}' and '{second.matrix.name}'"
    with np.errstate(all="ignore"):
        weights, added = ((each if each is None else (each.astype(b.dtype) @ b).astype(dtype.numpy())) for each in (a, c))
    assert weights is not None
    if not all(np.isfinite(each).all() for each in (a, b, weights, added) if each is not None):
        return NotApplicable("PRODUCTS-CORNERS", f"{names} are not finite, or their product is not")
    if weights.dtype.kind == "f" and not ctx.options.fast_math:
        most = _MOST_CANCELLED * np.abs(weights).max(0)
        cancels = (np.abs(a) @ np.abs(b)).max(0) > most
        if c is not None and added is not None:
            cancels = cancels | (np.abs(c) @ np.abs(b) > np.maximum(most, _MOST_CANCELLED * np.abs(added)))
        if cancels.any():
            return NotApplicable("PRODUCTS-CORNERS", f"the product of {names}, or of the constant added in between, cancels")
    return JoinedConstants(weights, added if added is None or not first.on_left else np.swapaxes(added, -1, -2))


def _addend_array(chain: ProductChain) -> np.ndarray | None:
    """Return the constant that is added between the products, [..., out_size], transposed if ``on_left``."""
    first = chain.first
    c = const_array(_addend(chain), limit=_MOST_BYTES)
    if c is None:
        return None
    if chain.addend is None and first.addend_scale != 1.0:
        c = c.astype(np.float64) * first.addend_scale
    c = c.reshape((1,) * (1 + first.on_left - c.ndim) + c.shape)
    c = np.swapaxes(c, -1, -2) if first.on_left else c
    return np.broadcast_to(c, (*c.shape[:-1], first.out_size)) if c.shape[-1] in (1, first.out_size) else None


def _addend(chain: ProductChain) -> ir.Value | None:
    return chain.first.addend if chain.addend is None else chain.addend


def infinity_obstacle(chain: ProductChain, loop: Loop, ctx: Context) -> NotApplicable | None:
    """Return a reason if joining the products could change the result for an infinite operand, else None.

    If a row of the operand has an infinity, the first product has infinities in all elements of this row. The second product adds
    these infinities. If their signs differ, the sum is NaN, but the joined product may return infinities.
    """
    first, second = chain.first, chain.second
    if second.result.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE) or ctx.options.fast_math:
        return None
    if not first.on_left and _is_normalised(second.result, ctx):
        return None
    growth = 1.0
    for product in (first, second):
        array = product.weights()
        growth *= 1.0 if array is None else max(1.0, float(np.abs(array).sum(0).max()))
    if _magnitude_bound(first.operand, loop) * growth <= _FAR_FROM_OVERFLOW:
        return None
    names = f"'{first.matrix.name}' and '{second.matrix.name}' make NaN, and their product might not"
    return NotApplicable("PRODUCTS-CORNERS", f"'{first.operand.name}' may be infinite: of that, {names}")


def _is_normalised(value: ir.Value, ctx: Context) -> bool:
    """Return True if each user of ``value`` turns a row of infinities and NaN into a row of only NaN."""

    def results(reached: ir.Value) -> list[ir.Value]:
        return [node.outputs[0] for node, _ in reached.uses() if _keeps_infinite(node)]

    return all(
        bool(reached.uses())
        and not reached.is_graph_output()
        and all(_keeps_infinite(node) or _normalises(node, ctx) for node, _ in reached.uses())
        for reached in postorder([value], results)
    )


def _keeps_infinite(node: ir.Node) -> bool:
    return node.domain == "" and node.op_type in _KEEP_INFINITE


def _normalises(node: ir.Node, ctx: Context) -> bool:
    if node.domain != "" or len(node.outputs) != 1:
        return False
    rank, default = rank_of(node.outputs[0]), -1 if ctx.opset >= since.SOFTMAX_OF_ONE_AXIS else 1
    return node.op_type in ("Softmax", "LayerNormalization") and rank is not None and axis_of(node, default, rank) == rank - 1


def _magnitude_bound(value: ir.Value, loop: Loop) -> float:
    """Return a bound of the magnitude of ``value`` in all steps, except for NaN; infinity if unknown.

    A state is bounded if its initial value is bounded, and if its next value is bounded for any values of the states.
    """
    outside = _Bounds()
    known = {} if isinstance(loop, LoopView) else {scan.inner: outside.bound(scan.outer) for scan in loop.scan_inputs}
    inside = _Bounds({**known, **{state.inner: math.inf for state in loop.states}})
    known |= {state.inner: max(outside.bound(state.initial), inside.bound(state.next)) for state in loop.states}
    return _Bounds(known).bound(value)


def _product_bound(bounds: "_Bounds", node: ir.Node) -> float:
    terms = None if node.inputs[0] is None else dim_of(node.inputs[0], -1)
    return math.prod(map(bounds.bound, node.inputs)) * terms if isinstance(terms, int) else math.inf


_TRANSFER: Mapping[str, Callable[["_Bounds", ir.Node], float]] = {
    **dict.fromkeys(("Cos", "Erf", "HardSigmoid", "Sigmoid", "Sin", "Softmax", "Softsign", "Tanh"), lambda _, node: 1.0),
    **dict.fromkeys(
        ("Abs", "Expand", "Gather", "Identity", "Neg", "Relu", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"),
        lambda bounds, node: bounds.bound(node.inputs[0]),
    ),
    **dict.fromkeys(("Concat", "Max", "Min"), lambda bounds, node: max(map(bounds.bound, node.inputs))),
    **dict.fromkeys(("Add", "Sub", "Sum"), lambda bounds, node: sum(map(bounds.bound, node.inputs))),
    "Cast": lambda _, node: 1.0 if node.inputs[0] is not None and node.inputs[0].dtype == ir.DataType.BOOL else math.inf,
    "MatMul": _product_bound,
    "Mul": lambda bounds, node: math.prod(map(bounds.bound, node.inputs)),
    "Where": lambda bounds, node: max(map(bounds.bound, node.inputs[1:])),
}


class _Bounds(Domain[float]):
    """Computes upper bounds of the magnitudes of values."""

    transfer = _TRANSFER

    def bound(self, value: ir.Value | None) -> float:
        """Return the bound of ``value``, or infinity if no bound is known."""
        bound = self.of(value)
        return math.inf if bound is None else bound

    def read(self, value: ir.Value) -> float | None:
        """Return the bound of a constant or a result; None if it is unknown or too near to overflow."""
        array, bound = const_array(value), super().read(value)
        if value.dtype == ir.DataType.BOOL:
            return 1.0
        if array is not None and array.dtype.kind in "biuf":
            bound = float(np.abs(array, dtype=np.float64).max(initial=np.finfo(np.float64).tiny))
        return bound if bound is not None and bound <= _FAR_FROM_OVERFLOW else None


def constant_product(node: ir.Node | None) -> ConstantProduct | None:
    """Return ``node`` as a ConstantProduct if it multiplies by a constant matrix, else None."""
    if node is None or node.domain != "" or node.op_type not in ("MatMul", "Gemm"):
        return None
    left, right = node.inputs[:2]
    if left is None or right is None or rank_of(node.outputs[0]) is None:
        return None
    if _is_matrix(right) and not is_constant(left):
        return _with_right_matrix(node, left, right)
    if _is_matrix(left) and not is_constant(right) and node.op_type == "MatMul" and (rank_of(right) or 0) >= _MATRIX:
        out_size, in_size = static_dims(left) or (0, 0)
        return ConstantProduct(node, right, left, True, in_size, out_size)
    return None


def _is_matrix(value: ir.Value) -> bool:
    dims = static_dims(value)
    return is_constant(value) and dims is not None and len(dims) == _MATRIX and 0 not in dims


def _with_right_matrix(node: ir.Node, operand: ir.Value, matrix: ir.Value) -> ConstantProduct:
    in_size, out_size = static_dims(matrix) or (0, 0)
    if node.op_type == "MatMul":
        return ConstantProduct(node, operand, matrix, False, in_size, out_size)
    attributes = node.attributes
    transposed, operand_transposed = bool(attributes.get_int("transB", 0)), bool(attributes.get_int("transA", 0))
    scale, addend_scale = attributes.get_float("alpha", 1.0), attributes.get_float("beta", 1.0)
    addend = node.inputs[2] if len(node.inputs) > 2 and addend_scale != 0.0 else None
    sizes = (out_size, in_size) if transposed else (in_size, out_size)
    return ConstantProduct(node, operand, matrix, False, *sizes, transposed, operand_transposed, scale, addend, addend_scale)
