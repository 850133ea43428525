"""Adds omitted parameters of activations if onnxruntime would use 0 instead of their default.

    RNN <activations = ["Affine"]> (x, W, R)    ->    RNN <activations = ["Affine"], activation_alpha = [1], activation_beta = [0]>

The operator's definition says: "Default values are the same as of corresponding ONNX operators". For Affine (alpha * x + beta) the
defaults are 1 and 0. For ThresholdedRelu the default is 1. onnxruntime uses 0, so an Affine or a ScaledTanh always returns 0.

Works around ORT-RECURRENT-DEFAULTS.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.ops.rnn.functions import compact_parameters
from rewrites.ops.rnn.recurrent_node import LISTS, RecurrentNode, defaulted_to_zero
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(view: RecurrentNode, _: Context) -> Patch | NotApplicable:
    """Return a patch if the node omits a parameter for which onnxruntime uses another default."""
    short = defaulted_to_zero(view)
    if not short:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        functions = [function for each in view.functions for function in each]
        for name, values in zip(LISTS, compact_parameters(functions), strict=True):
            if values:
                view.node.attributes[name] = ir.AttrFloat32s(name, values)
        return [view.node]

    names = ", ".join(dict.fromkeys(short))
    return Patch(f"wrote out the defaults of {names}, because onnxruntime would use 0", edit)


RULE = Rule("activation-defaults", "rnn_nodes", "recurrent node", check)
