"""The larger and the smaller of two int64 without axes, also before opset 12, where Max and Min take floats alone."""

import onnx_ir as ir

from rewrites.graph.builder import Builder

__all__ = ["exceeds", "larger", "smaller"]


def larger(b: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Return the larger one."""
    return b.op("Max", x, y) if b.opset >= 12 else _chosen(b, exceeds(b, x, y), x, y)


def smaller(b: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Return the smaller one."""
    return b.op("Min", x, y) if b.opset >= 12 else _chosen(b, exceeds(b, y, x), x, y)


def exceeds(b: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Return whether ``x`` is larger.

    Before opset 9 Greater takes floats alone. As doubles, numbers keep their order, but beyond 2**53 near ones may become equal.
    """
    if b.opset < 9:
        x, y = (b.op("Cast", value, to=int(ir.DataType.DOUBLE)) for value in (x, y))
    return b.op("Greater", x, y)


def _chosen(b: Builder, first: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    """Return ``x`` where ``first`` holds, else ``y``: by products, since Where is of opset 9."""
    first = b.op("Cast", first, to=int(ir.DataType.INT64))
    other = b.op("Sub", b.const(1), first)
    return b.op("Add", b.op("Mul", first, x), b.op("Mul", other, y))
