"""Two products by constant matrices, one after the other, and the constants of the one product that they are together."""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.fission.constant_products import ConstantProduct
from rewrites.graph.context import Context
from rewrites.graph.values import const_array
from rewrites.rule import NotApplicable

__all__ = ["MOST_BYTES", "Chain", "Joined", "joined"]

MOST_BYTES = 1 << 26
_MOST_CANCELLED = 256


@dataclass(frozen=True)
class Chain:
    """``second`` multiplies what ``first`` gives, with ``between`` added to it by the node ``add``; both may be None."""

    first: ConstantProduct
    second: ConstantProduct
    add: ir.Node | None
    between: ir.Value | None


@dataclass(frozen=True)
class Joined:
    """``weights``: [summed, wide]; ``added``: what is in between, multiplied, in the shape in which it is added."""

    weights: np.ndarray
    added: np.ndarray | None


def joined(chain: Chain, ctx: Context) -> Joined | NotApplicable | None:
    """Return the constants that are computed; None where they are too large, or of unlike shapes."""
    first, second, dtype = chain.first, chain.second, chain.second.result.dtype
    a, b, c = first.weights(MOST_BYTES), second.weights(MOST_BYTES), _between(chain)
    if a is None or b is None or dtype is None or (c is None and _value_between(chain) is not None):
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
            return NotApplicable("PRODUCTS-CORNERS", f"the product of {names}, or of what is added in between, cancels")
    return Joined(weights, added if added is None or not first.on_left else np.swapaxes(added, -1, -2))


def _value_between(chain: Chain) -> ir.Value | None:
    return chain.first.added if chain.between is None else chain.between


def _between(chain: Chain) -> np.ndarray | None:
    """Return what is added in between as [..., wide]: turned where the matrices are on the left, spread where it is one for all."""
    first, between = chain.first, _value_between(chain)
    c = None if between is None else const_array(between, limit=MOST_BYTES)
    if c is None:
        return None
    if chain.between is None and first.scale_added != 1.0:
        c = c.astype(np.float64) * first.scale_added
    c = c if c.ndim > first.on_left else c.reshape((1,) * (1 + first.on_left - c.ndim) + c.shape)
    c = np.swapaxes(c, -1, -2) if first.on_left else c
    return np.broadcast_to(c, (*c.shape[:-1], first.wide)) if c.shape[-1] in (1, first.wide) else None
