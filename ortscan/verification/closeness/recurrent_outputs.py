"""Which outputs of a model depend on nodes of onnxruntime that do not pass NaN on, or only from some positions.

RNN, LSTM and GRU take NaN and infinity for other numbers, as their activations bound what they get. Whether a ReduceMax, ReduceMin,
ArgMax or ArgMin drops a NaN depends on its position and on how many elements there are. DynamicQuantizeLinear converts NaN to an
integer, which is undefined. So a rewrite that adds, removes or compiles such a node changes what comes of NaN.

Works round ORT-RECURRENT-NAN, ORT-REDUCED-NAN and ORT-LOGSOFTMAX-NAN.
"""

from collections.abc import Mapping, Sequence, Set

import onnx

from ortscan.base.proto_graphs import bodies_of
from ortscan.running.graph_index import GraphIndex

__all__ = ["recurrent_outputs", "swallowing_outputs"]

_RECURRENT = frozenset(["RNN", "LSTM", "GRU"])
_SWALLOWING = _RECURRENT | {"LogSoftmax", "ReduceMax", "ReduceMin", "ArgMax", "ArgMin", "DynamicQuantizeLinear", "QuantizeLinear"}


def recurrent_outputs(proto: onnx.ModelProto) -> set[str]:
    """Return the outputs that depend on a recurrent node, wherever it is."""
    return _outputs_of(proto, _RECURRENT)


def swallowing_outputs(proto: onnx.ModelProto) -> set[str]:
    """Return the outputs that depend on a node that does not pass NaN on; a LogSoftmax of float64 gives numbers."""
    return _outputs_of(proto, _SWALLOWING)


def _outputs_of(proto: onnx.ModelProto, kinds: Set[str]) -> set[str]:
    functions = {(function.domain, function.name): list(function.node) for function in proto.functions}
    made = [name for node in proto.graph.node if _holds(node, kinds, functions, set()) for name in node.output if name]
    return GraphIndex(proto.graph).forward(made) & {value.name for value in proto.graph.output} if made else set()


def _holds(
    node: onnx.NodeProto, kinds: Set[str], functions: Mapping[tuple[str, str], Sequence[onnx.NodeProto]], seen: set[tuple[str, str]]
) -> bool:
    if node.op_type in kinds and node.domain in ("", "ai.onnx"):
        return True
    called = (node.domain, node.op_type)
    inner = [one for body in bodies_of(node) for one in body.node]
    if called in functions and called not in seen:
        seen.add(called)
        inner += functions[called]
    return any(_holds(one, kinds, functions, seen) for one in inner)
