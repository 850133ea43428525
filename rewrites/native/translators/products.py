"""MatMul and Gemm: products by a matrix that is packed where it is captured, else by any."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rewrites.native.call import Call
from rewrites.native.elements import FLOAT
from rewrites.native.operations import Op
from rewrites.native.views import Home, View, broadcast, dense

__all__ = ["PRODUCTS", "product"]


def product(call: Call, a: View, b: View) -> View:
    """Return the product of [..., M, K] and [..., K, N]."""
    rows, inner, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    call.body.free.check_same(a.shape[-1:], b.shape[-2:-1])
    if b.shape[-2] != inner or a.truth or b.truth:
        raise call.refuse("NATIVE-SHAPE", f"the shapes {a.shape} and {b.shape} cannot be multiplied")
    try:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise call.refuse("NATIVE-SHAPE", f"the shapes {a.shape} and {b.shape} cannot be multiplied") from None
    if inner == 1:
        return call.body.elementwise(Op.MUL, a, b)
    a = a if a.strides[-1] == 1 else call.body.copied(a)
    one = all(size == 1 for size in b.shape[:-2])
    if not (one and b.buffer.home == Home.CAPTURED) and columns > 1 and b.strides[-1] != 1 and b.strides[-2] != 1:
        b = call.body.copied(b)
    target = call.body.fresh((*batch, rows, columns), a)
    left, right = broadcast(a, (*batch, rows, inner)), broadcast(b, (*batch, inner, columns))
    left = replace(left, strides=(*left.strides[:-2], *a.strides[-2:]))
    right = replace(right, strides=(*right.strides[:-2], *b.strides[-2:]))
    op = Op.GEMM if one and b.buffer.home == Home.CAPTURED and b.dtype == FLOAT else Op.MATMUL
    return call.body.emit(op, target, left, right)


def _matmul(call: Call) -> Sequence[View]:
    a, b = call.view(0), call.view(1)
    if not a.shape or not b.shape:
        raise call.refuse("NATIVE-SHAPE", "an operand has no axes")
    one_row, one_column = len(a.shape) == 1, len(b.shape) == 1
    if one_row:
        a = replace(a, shape=(1, *a.shape), strides=(0, *a.strides))
    if one_column:
        b = replace(b, shape=(*b.shape, 1), strides=(*b.strides, 0))
    made = product(call, a, b)
    shape = [*made.shape[:-2], *([] if one_row else [made.shape[-2]]), *([] if one_column else [made.shape[-1]])]
    return [View(made.buffer, tuple(shape), dense(shape))]


def _gemm(call: Call) -> Sequence[View]:
    body, attributes = call.body, call.node.attributes
    a, b = (_turned(call.view(index), attributes.get_int(flag, 0)) for index, flag in enumerate(("transA", "transB")))
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise call.refuse("NATIVE-SHAPE", "an operand is no matrix")
    alpha, beta = attributes.get_float("alpha", 1.0), attributes.get_float("beta", 1.0)
    result = product(call, a, b)
    if alpha != 1.0:
        result = body.elementwise(Op.MUL, result, body.number(alpha, result.dtype))
    if call.has(2) and beta != 0.0:
        c = call.view(2)
        shape = result.shape
        result = body.elementwise(Op.ADD, result, c if beta == 1.0 else body.elementwise(Op.MUL, c, body.number(beta, c.dtype)))
        if result.shape != shape:
            raise call.refuse("NATIVE-SHAPE", f"what it adds has the shape {c.shape}")
    return [result]


def _turned(view: View, flag: int) -> View:
    return replace(view, shape=view.shape[::-1], strides=view.strides[::-1]) if flag else view


PRODUCTS: dict[str, Callable[[Call], Sequence[View]]] = {"Gemm": _gemm, "MatMul": _matmul}
