"""Two products by constant matrices, one after the other, and the constants of the one product that they are together."""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.constant_products import ConstantProduct
from rewrites.edits.rule import NotApplicable
from rewrites.graph.context import Context
from rewrites.graph.values import const_array

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
    a, b = first.weights(MOST_BYTES), second.weights(MOST_BYTES)
    if a is None or b is None or dtype is None:
        return None
    with np.errstate(all="ignore"):
        weights, added = (a @ b).astype(dtype.numpy()), _added(chain, b)
    if not all(np.isfinite(each).all() for each in (a, b, weights, added) if each is not None):
        return NotApplicable(
            "PRODUCTS-CORNERS", f"'{first.matrix.name}' and '{second.matrix.name}' are not finite, or their product is not"
        )
    cancelled = weights.dtype.kind == "f" and (np.abs(a) @ np.abs(b)).max(0) > _MOST_CANCELLED * np.abs(weights).max(0)
    if np.any(cancelled) and not ctx.options.fast_math:
        return NotApplicable("PRODUCTS-CORNERS", f"the product of '{first.matrix.name}' and '{second.matrix.name}' cancels")
    return Joined(weights, added) if added is not None or _between(chain) is None else None


def _between(chain: Chain) -> ir.Value | None:
    return chain.first.added if chain.between is None else chain.between


def _added(chain: Chain, b: np.ndarray) -> np.ndarray | None:
    """Return what is added in between, multiplied by the second matrix, in the shape in which it is added to the product."""
    first, between, dtype = chain.first, _between(chain), chain.second.result.dtype
    c = None if between is None else const_array(between, limit=MOST_BYTES)
    if c is None or dtype is None:
        return None
    c = c.astype(b.dtype) if chain.between is not None or first.scale_added == 1.0 else c.astype(b.dtype) * first.scale_added
    c = c if c.ndim > first.on_left else c.reshape((1,) * (1 + first.on_left - c.ndim) + c.shape)
    c = np.swapaxes(c, -1, -2) if first.on_left else c
    if c.shape[-1] not in (1, first.wide):
        return None
    made: np.ndarray = (np.broadcast_to(c, (*c.shape[:-1], first.wide)) @ b).astype(dtype.numpy())
    return np.swapaxes(made, -1, -2) if first.on_left else made
