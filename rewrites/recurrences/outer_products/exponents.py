"""Find or compute the exponents of decays: the values e with ``decay = exp(e)``.

If an Exp computes the decay, the exponent is the operand of this Exp. Otherwise a Log computes it from the decay, which must never
be negative. The logarithm of 0 is -inf, and the exponential of -inf is 0 again.
"""

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from rewrites.base.postorder import postorder
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.values import const_array, through_identity
from rewrites.recurrences.outer_products.terms import Factor, Product

__all__ = ["exponent", "exponents", "is_never_negative"]

_MOVES = frozenset({"Expand", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
_NEVER_NEGATIVE = frozenset({"Abs", "Exp", "HardSigmoid", "Sigmoid", "Softmax", "Softplus", "Sqrt"})


def is_never_negative(decay: Product, stacks: Stacks) -> bool:
    """Return True if all factors of ``decay`` are known to be positive or +0 (never -0)."""
    outers: list[ir.Value | None] = [_outer(factor.value, stacks) for factor in decay.factors]
    return all(map(_keeps_above_zero, postorder(outers, _signed_operands)))


def exponents(decay: Product, stacks: Stacks, put: Callable[[Product], ir.Value]) -> ir.Value:
    """Return a tensor with the exponents of ``decay``, which must never be negative.

    ``put``: a function that emits a Product for all steps, and returns the result.
    """
    source_exponent = exponent(decay, stacks)
    return stacks.build.op("Log", put(decay)) if source_exponent is None else put(source_exponent)


def exponent(decay: Product, stacks: Stacks) -> Product | None:
    """Return the exponent of ``decay`` if no Log node is needed to compute it, else None.

    No Log node is needed if ``decay`` is a single factor that is constant or computed by Exp.
    """
    if len(decay.factors) != 1 or decay.number != 1:
        return None
    b, (factor,) = stacks.build, decay.factors
    source = _outer(factor.value, stacks)
    constant = const_array(source)
    if constant is None:
        source_exponent = _exponent(source, b)
    else:
        with np.errstate(divide="ignore"):
            source_exponent = b.const(np.asarray(np.log(constant.astype(np.float64)), constant.dtype))
    if source_exponent is None:
        return None
    own_exponent = ir.Value(name=b.names.fresh("exponent"), type=factor.value.type, shape=factor.value.shape)
    scans = {scan.inner: scan for scan in stacks.loop.scan_inputs}
    scan = scans.get(factor.value)
    ordered = source_exponent if scan is None else stacks.ordered(source_exponent, scan.reverse)
    stacks.set(own_exponent, ordered, scan is not None or stacks.get(factor.value).batched)
    return Product(1.0, (Factor(own_exponent, factor.labels),))


def _outer(value: ir.Value, stacks: Stacks) -> ir.Value:
    """Return the tensor outside the loop that holds ``value`` for all steps.

    It is the operand of a scan input, or the result of a node that was moved out of the loop.
    """
    scans = {scan.inner: scan.outer for scan in stacks.loop.scan_inputs}
    return scans[value] if value in scans else stacks.get(value).value


def _signed_operands(value: ir.Value | None) -> Sequence[ir.Value | None]:
    """Return the operands that must all be >= 0 for ``value`` to be >= 0.

    They are operands of the node that computes ``value``. Return an empty list if the result of its operator is always >= 0, as for
    Exp, or if nothing is known about this operator.
    """
    node = value.producer() if value is not None and const_array(value) is None else None
    if node is None or node.domain != "":
        return ()
    if node.op_type in ("Add", "Mul"):
        return node.inputs
    return node.inputs[:1] if node.op_type in ("Pow", *_MOVES) else ()


def _keeps_above_zero(value: ir.Value | None) -> bool:
    """Return True if ``value`` is never negative when all its ``_signed_operands`` are never negative."""
    array = const_array(value)
    if array is not None:
        return array.dtype.kind == "f" and bool((array >= 0).all()) and not bool(np.signbit(array).any())
    node = None if value is None else value.producer()
    return node is not None and node.domain == "" and (node.op_type in _NEVER_NEGATIVE or bool(_signed_operands(value)))


def _exponent(value: ir.Value | None, b: Builder) -> ir.Value | None:
    """Return the exponent of ``value`` if an Exp computes it, else None.

    If nodes such as Reshape or Transpose follow the Exp, copies of them are applied to the exponent.
    """
    value = through_identity(value)
    node = None if value is None else value.producer()
    if node is None or node.domain != "":
        return None
    if node.op_type == "Exp":
        return node.inputs[0]
    source = _exponent(node.inputs[0], b) if node.op_type in _MOVES else None
    return None if source is None else b.like(node, [source, *node.inputs[1:]])[0]
