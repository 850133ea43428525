"""A product of what a Transpose gives with a vector multiplies a column from version 9 on.

    MatMul (Transpose (x), v)  ->  Squeeze (MatMul (Transpose (x), Unsqueeze <axes = [1]> (v)))

onnxruntime fuses the Transpose into products of that version and later, and then multiplies the matrix as it was by a vector; those
of version 1 are left alone, so that a model would compute something else once it is lifted.

Works round ORT-TRANSPOSED-TIMES-VECTOR.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.graph.values import rank_of
from rewrites.migration.step import Step
from rewrites.ops.versions import squeeze, unsqueeze

__all__ = ["vector_as_column"]

_BETWEEN = frozenset({"Cast", "Identity"})


def vector_as_column(step: Step) -> Sequence[ir.Value] | None:
    """8 -> 9."""
    left, right, b = step.required(0), step.required(1), step.builder
    node = _transpose(left)
    if node is None or rank_of(right) != 1:
        return None
    rank = rank_of(left) or len(node.attributes.get_ints("perm", ()))
    return [squeeze(b, b.op("MatMul", left, unsqueeze(b, right, [1])), [rank - 1])] if rank > 1 else None


def _transpose(value: ir.Value) -> ir.Node | None:
    node = value.producer()
    while node is not None and node.op_type in _BETWEEN and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    return node if node is not None and node.op_type == "Transpose" else None
