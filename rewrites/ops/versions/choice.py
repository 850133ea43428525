"""Writes a choice between two values for every type there is; onnxruntime's Where has kernels for some only.

Works round ORT-WHERE-TYPES.
"""

import onnx_ir as ir

from rewrites.graph.builder import Builder

__all__ = ["where"]

_BY_WAY_OF = {
    ir.DataType.FLOAT16: ir.DataType.FLOAT,
    ir.DataType.BFLOAT16: ir.DataType.FLOAT,
    ir.DataType.INT16: ir.DataType.INT32,
    ir.DataType.UINT16: ir.DataType.INT32,
    ir.DataType.UINT64: ir.DataType.INT64,
}
"""Types without a kernel, and a type that holds each of their values, or its bits, and casts back."""


def where(b: Builder, condition: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    """Return ``x`` where ``condition`` holds and ``y`` elsewhere, broadcasting; both have the same type."""
    if x.dtype == ir.DataType.BOOL:
        return b.op("Or", b.op("And", condition, x), b.op("And", b.op("Not", condition), y))
    wider = None if x.dtype is None else _BY_WAY_OF.get(x.dtype)
    if wider is None or x.dtype is None:
        return b.op("Where", condition, x, y)
    chosen = b.op("Where", condition, b.op("Cast", x, to=int(wider)), b.op("Cast", y, to=int(wider)))
    return b.op("Cast", chosen, to=int(x.dtype))
