"""Some axes of a view put last and made one, for what works along them."""

import math
from collections.abc import Sequence

import numpy as np

from rewrites.native.body import Body
from rewrites.native.views import View, dense, moved

__all__ = ["rows_along", "turned_back"]


def rows_along(body: Body, view: View, axes: Sequence[int]) -> View:
    """Return the view with ``axes`` as one last axis, whose elements lie one after the other."""
    rest = [axis for axis in range(len(view.shape)) if axis not in axes]
    order = [*rest, *axes]
    turned = View(
        view.buffer,
        tuple(view.shape[axis] for axis in order),
        tuple(view.strides[axis] for axis in order),
        view.offset,
        view.truth,
    )
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
