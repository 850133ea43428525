"""Conv as a product: what the filter is laid over is copied once for each of its places, then all is one product of matrices.

y = Conv(x [N, C, L], w [M, C, K])    ->    p[N, C * K, O] = x, moved K times; y = w [M, C * K] @ p
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product as places_of

from rewrites.native.call import Call
from rewrites.native.operations import Op
from rewrites.native.translators.products import product
from rewrites.native.views import View, broadcast, dense

__all__ = ["CONVOLUTION"]

_MOST_PLACES = 128
"""Of a filter, each of which takes a copy."""


@dataclass(frozen=True)
class _Axis:
    """How a filter of ``size`` places moves along an axis of ``given`` elements."""

    given: int
    size: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def made(self) -> int:
        return (self.given + self.before + self.after - self.dilation * (self.size - 1) - 1) // self.stride + 1

    def window(self, place: int) -> tuple[int, int, int]:
        """Return for which results a place of the filter lies on something: the first, how many, and on what the first lies."""
        start = place * self.dilation - self.before
        first = max(0, -(start // self.stride))
        last = min(self.made - 1, (self.given - 1 - start) // self.stride)
        return first, last - first + 1, first * self.stride + start


def _conv(call: Call) -> Sequence[View]:
    body, x, w = call.body, call.view(0), call.view(1)
    axes = _axes(call, x, w)
    sizes, made = [axis.size for axis in axes], [axis.made for axis in axes]
    groups, batch = call.node.attributes.get_int("group", 1), x.shape[0]
    if min(made) < 1 or w.shape[1] * groups != x.shape[1] or w.shape[0] % groups:
        raise call.refuse("NATIVE-SHAPE", f"the shapes {list(x.shape)} and {list(w.shape)} do not fit")
    laid = body.fresh((batch, x.shape[1], *sizes, *made), x)
    if any(axis.before or axis.after for axis in axes):
        body.emit(Op.COPY, laid, broadcast(body.number(0.0, x.dtype), laid.shape))
    for place in places_of(*map(range, sizes)):
        windows = [axis.window(at) for axis, at in zip(axes, place, strict=True)]
        if min(count for _, count, _ in windows) > 0:
            body.emit(Op.COPY, _laid_at(laid, place, windows), _lain_on(x, axes, windows))
    inner, each = w.shape[1] * math.prod(sizes), w.shape[0] // groups
    columns = _shaped(laid, (batch, groups, inner, math.prod(made)))
    weights = body.reshaped(w, (groups, each, inner))
    result = product(call, weights, columns)
    result = _shaped(result, (batch, w.shape[0], *made))
    if call.has(2):
        bias = call.view(2)
        result = body.elementwise(Op.ADD, result, body.reshaped(bias, (bias.count, *[1] * len(made))))
    return [result]


def _axes(call: Call, x: View, w: View) -> list[_Axis]:
    given = call.node.attributes
    count = len(x.shape) - 2
    if count < 1 or len(w.shape) != len(x.shape) or given.get_string("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise call.refuse("NATIVE-FORM", "its operands have too few axes, or its padding is not written out")
    if any(call.body.free.has(size) for size in (*x.shape[1:], *w.shape)):
        raise call.refuse("NATIVE-SHAPE", "it moves along an axis whose size is known only when the model runs")
    pads = given.get_ints("pads", None) or [0] * (2 * count)
    strides, dilations = given.get_ints("strides", None) or [1] * count, given.get_ints("dilations", None) or [1] * count
    sizes = w.shape[2:]
    if math.prod(sizes) > _MOST_PLACES or min(pads) < 0:
        raise call.refuse("NATIVE-LIMIT", f"its filter has {math.prod(sizes)} places, or it pads by less than nothing")
    ways = zip(x.shape[2:], sizes, strides, dilations, pads[:count], pads[count:], strict=True)
    return [_Axis(*way) for way in ways]


def _laid_at(laid: View, place: Sequence[int], windows: Sequence[tuple[int, int, int]]) -> View:
    """Return the results of one place of the filter that lie on something."""
    split = 2 + len(place)
    offset = sum(at * stride for at, stride in zip(place, laid.strides[2:split], strict=True))
    offset += sum(first * stride for (first, _, _), stride in zip(windows, laid.strides[split:], strict=True))
    shape = (*laid.shape[:2], *(count for _, count, _ in windows))
    return View(laid.buffer, shape, (*laid.strides[:2], *laid.strides[split:]), laid.offset + offset)


def _lain_on(x: View, axes: Sequence[_Axis], windows: Sequence[tuple[int, int, int]]) -> View:
    offset = sum(start * stride for (_, _, start), stride in zip(windows, x.strides[2:], strict=True))
    strides = (*x.strides[:2], *(axis.stride * stride for axis, stride in zip(axes, x.strides[2:], strict=True)))
    return View(x.buffer, (*x.shape[:2], *(count for _, count, _ in windows)), strides, x.offset + offset)


def _shaped(view: View, shape: tuple[int, ...]) -> View:
    return View(view.buffer, shape, dense(shape), view.offset)


CONVOLUTION: dict[str, Callable[[Call], Sequence[View]]] = {"Conv": _conv}
