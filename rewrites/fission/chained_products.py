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
from rewrites.fission.product_chains import JoinedConstants, ProductChain, constant_product, infinity_obstacle, join_constants
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
    """Return a patch for the first two successive products of the body that can be joined."""
    first_reason: NotApplicable | None = None
    for node in loop.body:
        chain = _match_chain(node, ctx)
        if chain is None:
            continue
        result = infinity_obstacle(chain, loop, ctx) or join_constants(chain, ctx)
        if isinstance(result, JoinedConstants):
            return _patch(chain, result, loop, ctx)
        first_reason = first_reason or result
    return first_reason or NOTHING_HERE


def _match_chain(node: ir.Node, ctx: Context) -> ProductChain | None:
    """Return the two successive products that end at ``node``; None if they cannot be joined."""
    second = constant_product(node)
    if second is None or second.operand_transposed or second.result.dtype not in _FLOATS | _INTEGERS:
        return None
    add, addend, product = None, None, second.operand
    producer = producer_of(product, "Add")
    if producer is not None and _is_read_once(product, node):
        terms = [value for value in producer.inputs if value is not None]
        constants = [value for value in terms if is_constant(value)]
        if len(constants) != 1 or len(terms) != 2:
            return None
        add, addend = producer, constants[0]
        if node.op_type == "Gemm" and math.prod((static_dims(addend) or ())[:-1]) != 1:  # it may have more rows than the product
            return None
        product = terms[1 - terms.index(addend)]
    first = constant_product(product.producer())
    if (
        first is None
        or not _is_read_once(product, add or node)
        or first.on_left != second.on_left
        or first.out_size != second.in_size
    ):
        return None
    if rank_of(product) != rank_of(second.operand) or (first.operand_transposed and _gemm_requires_c(ctx)):
        return None
    if first.addend is not None and (addend is not None or not is_constant(first.addend)):
        return None
    whole = {first.scale, first.addend_scale, second.scale, second.addend_scale} == {1.0}
    costs_more = first.in_size * second.out_size > first.in_size * first.out_size + second.in_size * second.out_size
    work = first.in_size * first.out_size * second.out_size
    if costs_more or work > _MOST_WORK or not (whole or product.dtype in _FLOATS):
        return None
    return ProductChain(first, second, add, addend)


def _is_read_once(value: ir.Value, reader: ir.Node) -> bool:
    """Return True if only ``reader``, a node of the same graph, reads ``value``, and it does so once."""
    return value.graph is reader.graph and len(value.uses()) == 1 and not value.is_graph_output()


def _gemm_requires_c(ctx: Context) -> bool:
    """Return True if Gemm requires its third operand C in this opset."""
    return ctx.opset < since.GEMM_WITHOUT_C


def _patch(chain: ProductChain, constants: JoinedConstants, loop: Loop, ctx: Context) -> Patch:
    """Return a patch that replaces ``chain`` by one product with ``constants``."""
    first, second = chain.first, chain.second
    b = ctx.builder()
    array = constants.weights.T if first.on_left else constants.weights
    addend = None if constants.addend is None else b.const(np.ascontiguousarray(constants.addend))
    result = _emit_product(chain, b.const(np.ascontiguousarray(array)), addend, ctx, b)

    def edit() -> list[ir.Node]:
        b.insert_before(second.node)
        take_over(second.result, result, ctx.names)
        remove_nodes([second.node, *([] if chain.add is None else [chain.add]), first.node])
        return [loop.node]

    what = f"{first.in_size} x {first.out_size} and {second.in_size} x {second.out_size}"
    return Patch(f"multiplied '{first.operand.name}' by the product of two constant matrices, {what}", edit)


def _emit_product(chain: ProductChain, matrix: ir.Value, addend: ir.Value | None, ctx: Context, b: Builder) -> ir.Value:
    """Emit the product by ``matrix`` that replaces ``chain``, and add ``addend`` if there is one.

    If one of the two products of ``chain`` is a Gemm and the opset allows it, the new product is a Gemm as well.
    """
    first, second = chain.first, chain.second
    added, beta = second.addend, second.addend_scale
    is_gemm = "Gemm" in (first.node.op_type, second.node.op_type)
    if is_gemm and added is None and addend is not None and math.prod((static_dims(addend) or ())[:-1]) == 1:
        added, beta, addend = addend, 1.0, None
    if is_gemm and (added is not None or not _gemm_requires_c(ctx)):
        transposed = int(first.operand_transposed) or None
        result = b.op("Gemm", first.operand, matrix, added, transA=transposed, beta=None if beta == 1.0 else beta)
    else:
        result = b.op("MatMul", *((matrix, first.operand) if first.on_left else (first.operand, matrix)))
    return result if addend is None else b.op("Add", result, addend)


RULE = Rule("chained-products", "fission", "loop", check)
