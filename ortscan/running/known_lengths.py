"""How many elements values have, where that follows from the sizes of a model's inputs, whatever else it declares.

x [1, 40, 8] -> LSTM -> Slices -> Concat    40 steps again, not 40 times what was joined before
"""

import math
from collections.abc import Set

import onnx

from ortscan.base.proto_graphs import all_graphs
from ortscan.ort.onnx_says import said_by_onnx, without_weights

__all__ = ["known_lengths"]


def known_lengths(proto: onnx.ModelProto) -> dict[str, int]:
    """Return how many elements values have: each of their axes is a number, or a free size of the inputs, which counts as 1.

    What onnx infers for the nodes of the main graph counts, and nothing else that is declared: that might be wrong.
    """
    bare = onnx.ModelProto()
    bare.CopyFrom(without_weights(proto))
    for graph in all_graphs(bare):
        graph.ClearField("value_info")
    for info in bare.graph.output:
        info.type.tensor_type.ClearField("shape")
    inferred = onnx.ModelProto()
    if (
        said_by_onnx(lambda: inferred.CopyFrom(onnx.shape_inference.infer_shapes(bare, strict_mode=True, data_prop=False)))
        is not None
    ):
        return {}
    free = {dim.dim_param for info in bare.graph.input for dim in info.type.tensor_type.shape.dim if dim.dim_param}
    inner = {name for graph in all_graphs(proto) if graph is not proto.graph for node in graph.node for name in node.output}
    lengths = {info.name: _length(info.type, free) for info in inferred.graph.value_info if info.name not in inner}
    return {name: length for name, length in lengths.items() if length is not None}


def _length(said: onnx.TypeProto, free: Set[str]) -> int | None:
    if not said.HasField("tensor_type") or not said.tensor_type.HasField("shape"):
        return None
    dims = said.tensor_type.shape.dim
    if not all(dim.HasField("dim_value") or dim.dim_param in free for dim in dims):
        return None
    return int(math.prod(dim.dim_value if dim.HasField("dim_value") else 1 for dim in dims))
