"""Which integer inputs may be made very large: those that cannot come to be a size, a count of steps or an index.

A model that adds ids may be asked to add 2**40; one that makes a Range of them, or repeats something so often, would take all
memory. Whatever is computed from an input counts, by any operator, and so does all of a loop that reads it.
"""

from collections.abc import Callable, Mapping

import onnx_ir as ir

from ortscan.running.analysis import Analysis

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
_FLOATS = frozenset([ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16])


def may_be_large(analysis: Analysis) -> set[str]:
    """Return the names of the inputs whose values decide nothing of the kind."""
    return {value.name or "" for value in analysis.model.graph.inputs} - _reaching(analysis, _is_deciding)


def may_be_divided(analysis: Analysis) -> set[str]:
    """Return the names of the inputs whose values come to be divided as integers: the least one by -1 ends the process."""
    return _reaching(analysis, _is_dividend)


def _is_deciding(node: ir.Node, index: int) -> bool:
    if node.op_type in ("Div", "Mod") and _is_float(node.inputs[index]):
        return False
    if (node.domain, node.op_type) in _LOOKING_UP:
        return False
    return node.domain not in ("", "ai.onnx") or index in _SIZING.get(node.op_type, ())


def _is_dividend(node: ir.Node, index: int) -> bool:
    return node.op_type == "Div" and index == 0 and not _is_float(node.inputs[index])


def _is_float(value: ir.Value | None) -> bool:
    return value is not None and value.dtype in _FLOATS


def _reaching(analysis: Analysis, told: Callable[[ir.Node, int], bool]) -> set[str]:
    owners = {
        attribute.as_graph(): node
        for node in ir.traversal.RecursiveGraphIterator(analysis.model.graph)
        for attribute in node.attributes.values()
        if attribute.type == ir.AttributeType.GRAPH
    }
    return {value.name or "" for value in analysis.model.graph.inputs if _reaches(value, told, owners)}


def _reaches(start: ir.Value, told: Callable[[ir.Node, int], bool], owners: Mapping[ir.Graph, ir.Node]) -> bool:
    waiting, seen = [start], {id(start)}
    while waiting:
        value = waiting.pop()
        fresh: list[ir.Value] = []
        for node, index in value.uses():
            if told(node, index):
                return True
            fresh.extend(node.outputs)
            for attribute in node.attributes.values():
                if attribute.type == ir.AttributeType.GRAPH:
                    fresh.extend(attribute.as_graph().inputs)
            graph = node.graph
            while isinstance(graph, ir.Graph) and graph in owners:
                fresh.extend((*owners[graph].outputs, *graph.inputs))
                graph = owners[graph].graph
        for each in fresh:
            if id(each) not in seen:
                seen.add(id(each))
                waiting.append(each)
    return False
