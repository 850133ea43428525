"""Rewrites nodes for which onnx or onnxruntime infers wrong shapes, or on which they fail.

STFT(x, step)                -> STFT<onesided = 1>(x, step)     without it, onnx and onnxruntime infer the two-sided size
LayerNormalization(x, w, "") -> LayerNormalization(x, w)        onnxruntime crashes on the empty name
Range(0, n, 1), n [1]        -> Range(0, Squeeze(n), 1)         onnx rejects n if it is a constant vector

Works around ORT-LAYERNORM-EMPTY-NAME, ONNX-STFT-ONESIDED and ONNX-RANGE-VECTOR.
"""

import functools
from collections.abc import Callable

import onnx
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.values import static_dims
from rewrites.graph.walk import all_nodes
from rewrites.ops.versions.emit import squeeze

__all__ = ["make_range_inputs_scalars", "remove_trailing_absent_inputs", "set_onesided"]


def set_onesided(graph: ir.Graph) -> None:
    """Set ``onesided`` of every STFT of ``graph`` and its nested graphs.

    Call this before shapes are inferred.
    """
    for node in all_nodes(graph):
        if node.op_type == "STFT" and node.domain in ("", "ai.onnx") and "onesided" not in node.attributes:
            node.attributes["onesided"] = ir.AttrInt64("onesided", 1)


def remove_trailing_absent_inputs(graph: ir.Graph, opset: int) -> None:
    """Remove absent inputs at the end of nodes of ``graph`` and its nested graphs.

    They stay if the operator does not allow fewer inputs.
    """
    for node in all_nodes(graph):
        if node.inputs and node.inputs[-1] is None and node.domain in ("", "ai.onnx"):
            least = _fewest_inputs(node.op_type, opset)
            count = max((position for position, value in enumerate(node.inputs, 1) if value is not None), default=0)
            if least is not None and count < len(node.inputs):
                node.resize_inputs(max(count, least))


@functools.cache
def _fewest_inputs(op_type: str, opset: int) -> int | None:
    """Return the smallest number of inputs that the operator allows; None for an unknown operator."""
    return int(onnx.defs.get_schema(op_type, opset, "").min_input) if onnx.defs.has(op_type, opset, "") else None


def make_range_inputs_scalars(graph: ir.Graph, builder: Callable[[], Builder]) -> None:
    """Squeeze the inputs of Range nodes that are vectors of one element, because Range needs scalars.

    ``builder``: returns a new, empty Builder.
    """
    for node in list(all_nodes(graph)):
        if node.op_type != "Range" or node.domain not in ("", "ai.onnx"):
            continue
        for index, value in enumerate(node.inputs):
            if value is not None and static_dims(value) == (1,):
                build = builder()
                node.replace_input_with(index, squeeze(build, value, [0]))
                build.insert_before(node)
