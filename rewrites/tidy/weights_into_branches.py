"""Moves the weights of an LSTM into the branch of an If that contains the LSTM.

    w, r = initializers; y = If(c) { LSTM(x, w, r) }    ->    y = If(c) { w, r = initializers; LSTM(x, w, r) }

``quantize_dynamic`` of onnxruntime looks for the weights of an LSTM in the graph of the LSTM. If they are in an outer graph, it
fails. ortscan puts an LSTM under an If if a batch may be empty.

These weights stay: weights in files, weights with other readers, inputs and outputs of the graph, and weights of models of IR
version 3 or 4. An LSTM inside a loop keeps its weights outside, unless ``weights-into-bodies`` moves them.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
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
        if weight is not None and weight.graph is model.graph and _may_move(weight)
    ]

    def edit() -> list[ir.Node]:
        for weight, branch in moves:
            del model.graph.initializers[weight.name or ""]
            branch.register_initializer(weight)
        return []

    return Patch("moved the weights of LSTMs into the branches that contain the LSTMs", edit) if moves else NOTHING_HERE


def _may_move(weight: ir.Value) -> bool:
    """Return True if ``weight`` is an initializer in memory that only one LSTM reads."""
    if weight.const_value is None or isinstance(weight.const_value, ir.ExternalTensor):
        return False
    return weight.is_initializer() and not weight.is_graph_input() and not weight.is_graph_output() and len(weight.uses()) == 1


RULE = Rule("weights-into-branches", "tidy", "model", check)
