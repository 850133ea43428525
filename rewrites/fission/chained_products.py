"""Joins two successive products by constant matrices into one product.

    a = MatMul(h, A); b = Add(a, c); y = MatMul(b, B)    ->    p = MatMul(h, A B); y = Add(p, c B)

MatMul(B, MatMul(A, h)) and Gemm are joined as well. Sums of floats are added in another order. The new constants are computed in
double and rounded once. Results of integers stay the same, even if they overflow.

Conditions: nothing else reads the intermediate result, and the number of multiplications does not grow. Each matrix has at most
64 MiB, and A B takes at most 2 ** 31 multiplications. Products of float32 and float64 have further conditions:

* The matrices are finite.
* The terms of A B and c B do not cancel: the results are not much smaller than the sums of the magnitudes of the terms.
* Infinities do not change the result. Either h is known to be bounded, or a Softmax or LayerNormalization reads y. In the second
  case, rows with infinities become NaN with one product as well as with two.

``fast_math`` drops the conditions on infinities and cancellation. float16 products stay, because they round the intermediate
result.
"""

import math

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.fission.product_chains import Joined, ProductChain, constant_product, infinite_unlike, joined
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, take_over
from rewrites.graph.values import is_constant, producer_of, rank_of, static_dims
from rewrites.loops import Loop
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})
_INTEGERS = frozenset({ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT32, ir.DataType.UINT64})
_MOST_WORK = 1 << 31


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch for the first two successive products of the body that can become one."""
    refused: NotApplicable | None = None
    for node in loop.body:
        chain = _chain(node, ctx)
        if chain is None:
            continue
        answer = infinite_unlike(chain, loop, ctx) or joined(chain, ctx)
        if isinstance(answer, Joined):
            return _patch(chain, answer, loop, ctx)
        refused = refused or answer
    return refused or NOTHING_HERE


def _chain(node: ir.Node, ctx: Context) -> ProductChain | None:
    second = constant_product(node)
    if second is None or second.operand_flipped or second.result.dtype not in _FLOATS | _INTEGERS:
        return None
    add, between, product = None, None, second.operand
    producer = producer_of(product, "Add")
    if producer is not None and _is_read_once(product, node):
        terms = [value for value in producer.inputs if value is not None]
        constants = [value for value in terms if is_constant(value)]
        if len(constants) != 1 or len(terms) != 2:
            return None
        add, between = producer, constants[0]
        if node.op_type == "Gemm" and math.prod((static_dims(between) or ())[:-1]) != 1:  # it may have more rows than the product
            return None
        product = terms[1 - terms.index(between)]
    first = constant_product(product.producer())
    if first is None or not _is_read_once(product, add or node) or first.on_left != second.on_left or first.wide != second.summed:
        return None
    if rank_of(product) != rank_of(second.operand) or (first.operand_flipped and _gemm_lacks_c(ctx)):
        return None
    if first.added is not None and (between is not None or not is_constant(first.added)):
        return None
    whole = {first.scale, first.scale_added, second.scale, second.scale_added} == {1.0}
    costs_more = first.summed * second.wide > first.summed * first.wide + second.summed * second.wide
    work = first.summed * first.wide * second.wide
    if costs_more or work > _MOST_WORK or not (whole or product.dtype in _FLOATS):
        return None
    return ProductChain(first, second, add, between)


def _is_read_once(value: ir.Value, reader: ir.Node) -> bool:
    return value.graph is reader.graph and len(value.uses()) == 1 and not value.is_graph_output()


def _gemm_lacks_c(ctx: Context) -> bool:
    return ctx.opset < since.GEMM_WITHOUT_C


def _patch(chain: ProductChain, constants: Joined, loop: Loop, ctx: Context) -> Patch:
    first, second = chain.first, chain.second
    b = ctx.builder()
    array = constants.weights.T if first.on_left else constants.weights
    extra = None if constants.added is None else b.const(np.ascontiguousarray(constants.added))
    result = _product(chain, b.const(np.ascontiguousarray(array)), extra, ctx, b)

    def edit() -> list[ir.Node]:
        b.insert_before(second.node)
        take_over(second.result, result, ctx.names)
        remove_nodes([second.node, *([] if chain.add is None else [chain.add]), first.node])
        return [loop.node]

    what = f"{first.summed} x {first.wide} and {second.summed} x {second.wide}"
    return Patch(f"multiplied '{first.operand.name}' by the product of two constant matrices, {what}", edit)


def _product(chain: ProductChain, matrix: ir.Value, extra: ir.Value | None, ctx: Context, b: Builder) -> ir.Value:
    """Emit the product by ``matrix`` that replaces ``chain``, plus the constant ``extra``, if any.

    If one of the two products of ``chain`` is a Gemm and the opset allows it, the new product is a Gemm as well.
    """
    first, second = chain.first, chain.second
    added, beta = second.added, second.scale_added
    is_gemm = "Gemm" in (first.node.op_type, second.node.op_type)
    if is_gemm and added is None and extra is not None and math.prod((static_dims(extra) or ())[:-1]) == 1:
        added, beta, extra = extra, 1.0, None
    if is_gemm and (added is not None or not _gemm_lacks_c(ctx)):
        flag = int(first.operand_flipped) or None
        result = b.op("Gemm", first.operand, matrix, added, transA=flag, beta=None if beta == 1.0 else beta)
    else:
        result = b.op("MatMul", *((matrix, first.operand) if first.on_left else (first.operand, matrix)))
    return result if extra is None else b.op("Add", result, extra)


RULE = Rule("chained-products", "fission", "loop", check)
