"""Reads Softmax, LogSoftmax and Hardmax (whose meaning changed in opset 13) and TopK (whose k became an input)."""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.ops.versions.axes import Dynamic, axis_of, int_operand

__all__ = ["SoftmaxSpec", "TopKSpec", "softmax_spec", "topk_spec"]


@dataclass(frozen=True)
class SoftmaxSpec:
    """Over what a Softmax, LogSoftmax or Hardmax normalises.

    ``flattens``: over all axes from ``axis`` on, taken together (before opset 13); else over ``axis`` alone.
    """

    axis: int
    flattens: bool


@dataclass(frozen=True)
class TopKSpec:
    """What a TopK selects: ``k`` is None where it is an input that is not constant."""

    axis: int
    k: int | None
    largest: bool
    sorted: bool


def softmax_spec(node: ir.Node, opset: int, rank: int | None = None) -> SoftmaxSpec:
    """Read a Softmax, LogSoftmax or Hardmax; ``axis`` is non-negative where ``rank`` is given."""
    flattens = opset < 13
    return SoftmaxSpec(axis_of(node, 1 if flattens else -1, rank), flattens)


def topk_spec(node: ir.Node, opset: int, rank: int | None = None) -> TopKSpec:
    """Read a TopK; ``axis`` is non-negative where ``rank`` is given."""
    k: int | Dynamic | None = node.attributes.get_int("k") if opset < 10 else int_operand(node, 1)
    largest, in_order = node.attributes.get_int("largest", 1), node.attributes.get_int("sorted", 1)
    return TopKSpec(axis_of(node, -1, rank), None if isinstance(k, Dynamic) else k, bool(largest), bool(in_order))
