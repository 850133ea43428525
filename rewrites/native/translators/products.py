"""Translates MatMul, Gemm, Einsum of two operands and Conv into products of matrices.

    bij,bkj->bik                          ->    [b, i, j] @ [b, j, k]
    y = Conv(x [N, C, L], w [M, C, K])    ->    y = w [M, C * K] @ p [N, C * K, O]    p: copies of x

A captured matrix is packed. In an Einsum, letters that occur in both operands and in the result are batch axes. Letters that occur
in both operands, but not in the result, are summed over. For a Conv, p holds the elements of x under each of the K positions of the
filter, for each of the O positions of the result.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product as places_of

import numpy as np

from rewrites.native.operations import FLOAT, Op
from rewrites.native.operator_views import Translator, TranslatorCall, as_matrices, permute_axes
from rewrites.native.views import Origin, View, broadcast, dense_strides

__all__ = ["PRODUCTS", "product"]


def product(call: TranslatorCall, a: View, b: View) -> View:
    """Return the product of ``a`` [..., M, K] and ``b`` [..., K, N]."""
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
    if not (one and b.buffer.origin == Origin.CAPTURED) and columns > 1 and b.strides[-1] != 1 and b.strides[-2] != 1:
        b = call.body.copied(b)
    target = call.body.new_buffer((*batch, rows, columns), a)
    left, right = broadcast(a, (*batch, rows, inner)), broadcast(b, (*batch, inner, columns))
    left = replace(left, strides=(*left.strides[:-2], *a.strides[-2:]))
    right = replace(right, strides=(*right.strides[:-2], *b.strides[-2:]))
    op = Op.GEMM if one and b.buffer.origin == Origin.CAPTURED and b.dtype == FLOAT else Op.MATMUL
    return call.body.emit(op, target, left, right)


def _matmul(call: TranslatorCall) -> Sequence[View]:
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
    return [View(made.buffer, tuple(shape), dense_strides(shape))]


def _gemm(call: TranslatorCall) -> Sequence[View]:
    body, attributes = call.body, call.node.attributes
    a, b = (_transposed(call.view(index), attributes.get_int(flag, 0)) for index, flag in enumerate(("transA", "transB")))
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise call.refuse("NATIVE-SHAPE", "an operand is not a matrix")
    alpha, beta = attributes.get_float("alpha", 1.0), attributes.get_float("beta", 1.0)
    result = product(call, a, b)
    if alpha != 1.0:
        result = body.elementwise(Op.MUL, result, body.number(alpha, result.dtype))
    if call.has(2) and beta != 0.0:
        c = call.view(2)
        shape = result.shape
        result = body.elementwise(Op.ADD, result, c if beta == 1.0 else body.elementwise(Op.MUL, c, body.number(beta, c.dtype)))
        if result.shape != shape:
            raise call.refuse("NATIVE-SHAPE", f"its third operand has the shape {c.shape}")
    return [result]


def _transposed(view: View, flag: int) -> View:
    return replace(view, shape=view.shape[::-1], strides=view.strides[::-1]) if flag else view


def _einsum(call: TranslatorCall) -> Sequence[View]:
    one, other, result = _letters(call)
    a, b = call.views
    sizes = dict(zip(one + other, a.shape + b.shape, strict=True))
    if [sizes[letter] for letter in one + other] != [*a.shape, *b.shape]:
        raise call.refuse("NATIVE-SHAPE", f"the shapes {a.shape} and {b.shape} do not fit its equation")
    batch = [letter for letter in result if letter in one and letter in other]
    left = [letter for letter in result if letter in one and letter not in other]
    right = [letter for letter in result if letter in other and letter not in one]
    inner = [letter for letter in one if letter in other and letter not in result]
    matrix = as_matrices(
        call.body, permute_axes(a, [one.index(letter) for letter in (*batch, *left, *inner)]), len(batch), len(left)
    )
    weights = as_matrices(
        call.body, permute_axes(b, [other.index(letter) for letter in (*batch, *inner, *right)]), len(batch), len(inner)
    )
    made = product(call, matrix, weights)
    order = [*batch, *left, *right]
    whole = View(made.buffer, tuple(sizes[letter] for letter in order), dense_strides([sizes[letter] for letter in order]))
    return [permute_axes(whole, [order.index(letter) for letter in result])]


def _letters(call: TranslatorCall) -> tuple[str, str, str]:
    """Return the letters of the first operand, of the second operand and of the result, as three strings.

    Raise PlanRefused if the equation is not a single product.
    """
    equation = call.node.attributes.get_string("equation", "") or ""
    operands, arrow, result = equation.replace(" ", "").partition("->")
    parts = operands.split(",")
    if not arrow or len(parts) != 2 or "." in equation or len(call.node.inputs) != 2:
        raise call.refuse("NATIVE-FORM", f"'{equation}' is not an explicit equation of two operands")
    one, other = parts
    plain = all(len(set(part)) == len(part) == len(view.shape) for part, view in zip(parts, call.views, strict=True))
    alone = (set(one) ^ set(other)) - set(result)
    if not plain or len(set(result)) < len(result) or not set(result) <= set(operands) or alone:
        raise call.refuse("NATIVE-FORM", f"'{equation}' repeats a letter, or sums over one of a single operand")
    return one, other, result


_MOST_PLACES = 128
"""The maximum number of positions of a filter. Each position needs a copy."""


@dataclass(frozen=True)
class _FilterAxis:
    """One axis of a convolution: a filter of ``size`` elements moves along ``data_size`` elements of data.

    ``padding_before`` and ``padding_after``: the numbers of padding elements at the two ends of the data.
    """

    data_size: int
    size: int
    stride: int
    dilation: int
    padding_before: int
    padding_after: int

    @property
    def result_size(self) -> int:
        return (self.data_size + self.padding_before + self.padding_after - self.dilation * (self.size - 1) - 1) // self.stride + 1

    def window(self, filter_index: int) -> tuple[int, int, int]:
        """Return the range of results that multiply filter element ``filter_index`` by data, not by padding.

        Returns:
            A triple: the index of the first of these results, the number of these results, and the index of the data element that
            the first of them multiplies by the filter element.
        """
        start = filter_index * self.dilation - self.padding_before
        first = max(0, -(start // self.stride))
        last = min(self.result_size - 1, (self.data_size - 1 - start) // self.stride)
        return first, last - first + 1, first * self.stride + start


def _conv(call: TranslatorCall) -> Sequence[View]:
    body, x, w = call.body, call.view(0), call.view(1)
    axes = _axes(call, x, w)
    sizes, result_sizes = [axis.size for axis in axes], [axis.result_size for axis in axes]
    groups, batch = call.node.attributes.get_int("group", 1), x.shape[0]
    if min(result_sizes) < 1 or w.shape[1] * groups != x.shape[1] or w.shape[0] % groups:
        raise call.refuse("NATIVE-SHAPE", f"the shapes {list(x.shape)} and {list(w.shape)} do not fit")
    patches = body.new_buffer((batch, x.shape[1], *sizes, *result_sizes), x)
    if any(axis.padding_before or axis.padding_after for axis in axes):
        body.emit(Op.COPY, patches, broadcast(body.number(0.0, x.dtype), patches.shape))
    for filter_index in places_of(*map(range, sizes)):
        windows = [axis.window(at) for axis, at in zip(axes, filter_index, strict=True)]
        if min(count for _, count, _ in windows) > 0:
            body.emit(Op.COPY, _filter_element_columns(patches, filter_index, windows), _data_under(x, axes, windows))
    inner, each = w.shape[1] * math.prod(sizes), w.shape[0] // groups
    columns = _shaped(patches, (batch, groups, inner, math.prod(result_sizes)))
    weights = body.reshaped(w, (groups, each, inner))
    result = product(call, weights, columns)
    result = _shaped(result, (batch, w.shape[0], *result_sizes))
    if call.has(2):
        bias = call.view(2)
        result = body.elementwise(Op.ADD, result, body.reshaped(bias, (bias.count, *[1] * len(result_sizes))))
    return [result]


def _axes(call: TranslatorCall, x: View, w: View) -> list[_FilterAxis]:
    given = call.node.attributes
    count = len(x.shape) - 2
    if count < 1 or len(w.shape) != len(x.shape) or given.get_string("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise call.refuse("NATIVE-FORM", "its operands have too few axes, or its padding is not explicit")
    if any(call.body.free.is_free(size) for size in (*x.shape[1:], *w.shape)):
        raise call.refuse("NATIVE-SHAPE", "it moves along an axis whose size is known only at run time")
    pads = given.get_ints("pads", None) or [0] * (2 * count)
    strides, dilations = given.get_ints("strides", None) or [1] * count, given.get_ints("dilations", None) or [1] * count
    sizes = w.shape[2:]
    if math.prod(sizes) > _MOST_PLACES or min(pads) < 0:
        raise call.refuse("NATIVE-LIMIT", f"its filter has {math.prod(sizes)} positions, or its padding is negative")
    ways = zip(x.shape[2:], sizes, strides, dilations, pads[:count], pads[count:], strict=True)
    return [_FilterAxis(*way) for way in ways]


def _filter_element_columns(patches: View, filter_index: Sequence[int], windows: Sequence[tuple[int, int, int]]) -> View:
    """Return the part of ``patches`` that holds the factors of one filter element.

    Args:
        patches: The data for each filter element and each result.
        filter_index: The index of the filter element along each axis.
        windows: For each axis, the result of ``_FilterAxis.window``. Results that multiply the element by padding are left out.
    """
    split = 2 + len(filter_index)
    offset = sum(at * stride for at, stride in zip(filter_index, patches.strides[2:split], strict=True))
    offset += sum(first * stride for (first, _, _), stride in zip(windows, patches.strides[split:], strict=True))
    shape = (*patches.shape[:2], *(count for _, count, _ in windows))
    return View(patches.buffer, shape, (*patches.strides[:2], *patches.strides[split:]), patches.offset + offset)


def _data_under(x: View, axes: Sequence[_FilterAxis], windows: Sequence[tuple[int, int, int]]) -> View:
    offset = sum(start * stride for (_, _, start), stride in zip(windows, x.strides[2:], strict=True))
    strides = (*x.strides[:2], *(axis.stride * stride for axis, stride in zip(axes, x.strides[2:], strict=True)))
    return View(x.buffer, (*x.shape[:2], *(count for _, count, _ in windows)), strides, x.offset + offset)


def _shaped(view: View, shape: tuple[int, ...]) -> View:
    return View(view.buffer, shape, dense_strides(shape), view.offset)


PRODUCTS: dict[str, Translator] = {"Gemm": _gemm, "MatMul": _matmul, "Einsum": _einsum, "Conv": _conv}
