"""Axes of a view in another order, and several made one, for what works along them."""

import math
from collections.abc import Sequence

import numpy as np

from rewrites.native.body import Body
from rewrites.native.views import View, dense, moved

__all__ = ["in_order", "merged", "rows_along", "turned_back"]


def rows_along(body: Body, view: View, axes: Sequence[int]) -> View:
    """Return the view with ``axes`` as one last axis, whose elements lie one after the other."""
    rest = [axis for axis in range(len(view.shape)) if axis not in axes]
    turned = in_order(view, [*rest, *axes])
    shape = (*turned.shape[: len(rest)], math.prod(view.shape[axis] for axis in axes))
    (made,) = moved(turned, lambda addresses: [addresses.reshape(shape)]) or [np.empty(0)]
    if isinstance(made, View) and (shape[-1] == 1 or made.strides[-1] in (0, 1)):
        return made
    return body.reshaped(turned, shape)


def turned_back(result: View, shape: Sequence[int], axes: Sequence[int]) -> View:
    """Return a dense result of ``rows_along`` in the order of axes that it had."""
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    order = [*rest, *axes]
    strides = dict(zip(order, dense([shape[axis] for axis in order]), strict=True))
    return View(result.buffer, tuple(shape), tuple(strides[axis] for axis in range(len(shape))), result.offset)


def in_order(view: View, order: Sequence[int]) -> View:
    """Return the view with its axes in this order."""
    shape = tuple(view.shape[axis] for axis in order)
    return View(view.buffer, shape, tuple(view.strides[axis] for axis in order), view.offset, view.truth)


def merged(body: Body, view: View, batches: int, rows: int) -> View:
    """Return the view as matrices: after ``batches`` axes the next ``rows`` are one axis, and what follows is another."""
    split = batches + rows
    shape = (*view.shape[:batches], math.prod(view.shape[batches:split]), math.prod(view.shape[split:]))
    (made,) = moved(view, lambda addresses: [addresses.reshape(shape)]) or [np.empty(0)]
    return made if isinstance(made, View) else body.reshaped(view, shape)
