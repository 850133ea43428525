"""Moves the weights of an LSTM into the branch of an If that contains the LSTM.

    w, r = initializers; y = If(c) { LSTM(x, w, r) }    ->    y = If(c) { w, r = initializers; LSTM(x, w, r) }

``quantize_dynamic`` of onnxruntime looks for the weights of an LSTM in the graph of the LSTM. If they are in an outer graph, it
fails. ortscan puts an LSTM under an If if a batch may be empty.

These weights stay: weights in files, weights with other readers, inputs and outputs of the graph, and weights of models of IR
version 3 or 4. An LSTM inside a loop keeps its weights outside, unless ``weights-into-bodies`` moves them.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.replace import is_stored_in_main, lower_initializers
from rewrites.graph.walk import node_graphs
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_WEIGHTS = (1, 2)
_FIRST_IR = 5  # in IR version 3 initializers are inputs; during rewriting such models have version 4


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Return a patch that moves the weights of LSTMs into the branches that contain the LSTMs."""
    if ctx.model.ir_version < _FIRST_IR:
        return NOTHING_HERE
    branches = [graph for node in model.graph if node.op_type == "If" and node.domain == "" for graph in node_graphs(node)]
    moves = [
        (weight, branch)
        for branch in branches
        for node in branch
        if node.op_type == "LSTM" and node.domain == ""
        for weight in node.inputs[_WEIGHTS[0] : _WEIGHTS[-1] + 1]
        if weight is not None and is_stored_in_main(weight, model.graph) and len(weight.uses()) == 1
    ]

    def edit() -> list[ir.Node]:
        lower_initializers(moves, model.graph)
        return []

    return Patch("moved the weights of LSTMs into the branches that contain the LSTMs", edit) if moves else NOTHING_HERE


RULE = Rule("weights-into-branches", "tidy", "model", check)
