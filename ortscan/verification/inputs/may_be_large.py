"""Find the integer inputs that may be very large.

A model that only adds or compares integers can also run with integers such as 2**40. But a model that passes such an integer to
Range or Tile exhausts the memory. An input may be large if it cannot determine a size, a number of steps or an index.

The search follows an input through all values that are computed from it. If a loop reads one of these values, all values in the
loop count as computed from the input.
"""

from collections.abc import Callable

import onnx_ir as ir

from ortscan.running.analysis import Analysis
from ortscan.verification.inputs.roles import FLOAT_TYPES, owners_of

__all__ = ["may_be_divided", "may_be_large"]

_SIZING = {
    "Range": (0, 1, 2), "ConstantOfShape": (0,), "Tile": (1,), "Expand": (1,), "Pad": (1,), "Resize": (1, 2, 3), "Upsample": (1,),
    "OneHot": (1,), "Reshape": (1,), "TopK": (1,), "Loop": (0, 1), "Slice": (1, 2, 3, 4), "Split": (1,), "NonMaxSuppression": (2,),
    "Gather": (1,), "GatherElements": (1,), "GatherND": (1,), "ScatterElements": (1,), "ScatterND": (1,), "Scatter": (1,),
    "RNN": (4,), "LSTM": (4,), "GRU": (4,), "DynamicQuantizeLSTM": (4,), "ReverseSequence": (1,), "Unsqueeze": (1,),
    "Squeeze": (1,), "CumSum": (1,),
    "SequenceAt": (1,), "SequenceInsert": (2,), "SequenceErase": (1,), "SplitToSequence": (1,), "BitShift": (1,), "Div": (1,),
    "Mod": (0, 1), "Pow": (1,), "MelWeightMatrix": (0, 1, 2), "HannWindow": (0,), "HammingWindow": (0,), "BlackmanWindow": (0,),
}  # fmt: skip
_LOOKING_UP = frozenset([("ai.onnx.ml", "LabelEncoder"), ("ai.onnx.ml", "CategoryMapper"), ("ai.onnx.ml", "OneHotEncoder")])


def may_be_large(analysis: Analysis) -> set[str]:
    """Return the names of the inputs that cannot determine a size, a number of steps or an index."""

    def decides(node: ir.Node, index: int) -> bool:
        if (node.op_type in ("Div", "Mod") and _is_float(node.inputs[index])) or (node.domain, node.op_type) in _LOOKING_UP:
            return False
        return node.domain not in ("", "ai.onnx") or index in _SIZING.get(node.op_type, ())

    return {value.name or "" for value in analysis.model.graph.inputs} - _reaching(analysis, decides)


def may_be_divided(analysis: Analysis) -> set[str]:
    """Return the names of the inputs that may be the dividend of an integer division.

    Such an input must not be the lowest integer, because onnxruntime crashes if it divides the lowest integer by -1.
    """
    return _reaching(analysis, lambda node, index: node.op_type == "Div" and index == 0 and not _is_float(node.inputs[index]))


def _is_float(value: ir.Value | None) -> bool:
    return value is not None and value.dtype in FLOAT_TYPES


def _reaching(analysis: Analysis, is_target: Callable[[ir.Node, int], bool]) -> set[str]:
    """Return the names of the model's inputs that are read at a target, directly or after other nodes.

    A target is an input of a node: ``is_target(node, position)`` returns True if the input of ``node`` at ``position`` is a target.
    """
    owners = owners_of(analysis)

    def reaches(start: ir.Value) -> bool:
        pending, seen = [start], {start}
        while pending:
            fresh: list[ir.Value] = []
            for node, index in pending.pop().uses():
                if is_target(node, index):
                    return True
                fresh.extend(node.outputs)
                for attribute in node.attributes.values():
                    if attribute.type == ir.AttributeType.GRAPH:
                        fresh.extend(attribute.as_graph().inputs)
                graph = node.graph
                while isinstance(graph, ir.Graph) and graph in owners:
                    fresh.extend((*owners[graph].outputs, *graph.inputs))
                    graph = owners[graph].graph
            pending += [value for value in fresh if value not in seen]
            seen.update(fresh)
        return False

    return {value.name or "" for value in analysis.model.graph.inputs if reaches(value)}
