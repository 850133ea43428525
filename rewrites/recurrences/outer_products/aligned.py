"""Products of factors for all steps, with axes in a given order."""

import numpy as np
import onnx_ir as ir

from rewrites.fission.stacks import Stacks
from rewrites.ops.versions import squeeze, transpose, unsqueeze
from rewrites.recurrences.outer_products.terms import Factor, Product

__all__ = ["multiplied"]


def multiplied(stacks: Stacks, product: Product, labels: tuple[int, ...], dtype: np.dtype, *, alone: bool) -> ir.Value:
    """Return ``product`` of all steps, with axes that broadcast to ``labels`` behind that of the steps.

    ``alone``: where the one factor may keep axes of size 1 among them.
    """
    build, whole = stacks.build, None
    for factor in product.factors:
        one = _aligned(stacks, factor, labels, alone=alone and len(product.factors) == 1)
        whole = one if whole is None else build.op("Mul", whole, one)
    if whole is None:
        return build.const(np.full([1] * (1 + len(labels)), product.number, dtype))
    return whole if product.number == 1 else build.op("Neg", whole)


def _aligned(stacks: Stacks, factor: Factor, labels: tuple[int, ...], *, alone: bool) -> ir.Value:
    build, operand, own = stacks.build, stacks.get(factor.value), list(factor.labels)
    whole = operand.value if operand.batched else unsqueeze(build, operand.value, [0])
    named = [label for label in own if label is not None]
    if len(own) == len(labels) and all(mine in (None, label) for mine, label in zip(own, labels, strict=True)):
        return whole
    if alone and operand.batched and named == list(labels):
        return whole
    whole = squeeze(build, whole, [1 + axis for axis, label in enumerate(own) if label is None])
    order = sorted(range(len(named)), key=lambda axis: labels.index(named[axis]))
    whole = transpose(build, whole, [0, *(1 + axis for axis in order)])
    return unsqueeze(build, whole, [1 + axis for axis, label in enumerate(labels) if label not in named])
