"""Recognises weights that are stored in fewer bits, as ``storing`` writes them.

w = Cast(W_int8); W = Mul(w, W_scale)    or    W = Cast(W_float16)
"""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.graph.values import is_constant, producer_of, static_dims

__all__ = ["NarrowWeight", "narrow_weight"]

_HALVES = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


@dataclass(frozen=True)
class NarrowWeight:
    """A weight in fewer bits.

    Attributes:
        constant: the stored numbers.
        scale: the scale of each row of the last two axes; None if the numbers are no int8.
        nodes: the nodes that compute the float32 weight, in their order.
    """

    constant: ir.Value
    scale: ir.Value | None
    nodes: tuple[ir.Node, ...]


def narrow_weight(value: ir.Value | None) -> NarrowWeight | None:
    """Return how ``value`` is stored, or None if it is no weight in fewer bits."""
    mul = producer_of(value, "Mul")
    cast = producer_of(value if mul is None else mul.inputs[0], "Cast")
    constant = cast.inputs[0] if cast is not None else None
    if cast is None or constant is None or not is_constant(constant) or cast.attributes["to"].as_int() != ir.DataType.FLOAT:
        return None
    if mul is None:
        return NarrowWeight(constant, None, (cast,)) if constant.dtype in _HALVES else None
    scale, dims = mul.inputs[1], static_dims(constant)
    if constant.dtype != ir.DataType.INT8 or dims is None or scale is None or not is_constant(scale):
        return None
    return NarrowWeight(constant, scale, (cast, mul)) if static_dims(scale) == (*dims[:-1], 1) else None
