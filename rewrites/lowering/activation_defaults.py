"""Parameters that activations are not given are written out where onnxruntime takes 0 instead of the default.

    RNN <activations = ["Affine"]> (x, W, R)    ->    RNN <activations = ["Affine"], activation_alpha = [1], activation_beta = [0]>

The text: "Default values are the same as of corresponding ONNX operators", which for Affine is alpha * x + beta with 1 and 0, and 1
for ThresholdedRelu. With onnxruntime's 0 an Affine or a ScaledTanh gives 0 whatever it is given.
"""

import onnx_ir as ir

from rewrites.context import Context
from rewrites.lowering.recurrent_node import RecurrentNode
from rewrites.recurrences.functions import PARAMETERS, compact
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch

__all__ = ["NAME", "check"]

NAME = "activation-defaults"

_TAKEN_AS_0 = frozenset({"Affine", "ScaledTanh", "ThresholdedRelu"})
_LISTS = ("activation_alpha", "activation_beta")


def check(view: RecurrentNode, _: Context) -> Patch | NotApplicable:
    """See whether the lists of parameters end before one of those activations."""
    functions = [function for each in view.functions for function in each]
    short: list[str] = []
    for which, name in enumerate(_LISTS):
        takers = [function.name for function in functions if PARAMETERS[function.name][which] is not None]
        given = view.node.attributes.get_floats(name, ())
        short += [one for one in takers[len(given) :] if one in _TAKEN_AS_0]
    if not short:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        for name, values in zip(_LISTS, compact(functions), strict=True):
            if values:
                view.node.attributes[name] = ir.AttrFloat32s(name, values)
        return [view.node]

    return Patch(
        f"wrote out what {', '.join(dict.fromkeys(short))} takes where nothing is given, for which onnxruntime takes 0", edit
    )
