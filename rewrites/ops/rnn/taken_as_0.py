"""Activations whose parameters a node leaves out, where onnxruntime takes 0 for them instead of the operator's defaults.

Works round ORT-RECURRENT-DEFAULTS.
"""

from rewrites.ops.rnn.functions import PARAMETERS
from rewrites.ops.rnn.recurrent_node import RecurrentNode

__all__ = ["LISTS", "taken_as_0"]

LISTS = ("activation_alpha", "activation_beta")
"""The attributes that hold parameters of activations."""

_TAKEN_AS_0 = frozenset({"Affine", "ScaledTanh", "ThresholdedRelu"})


def taken_as_0(view: RecurrentNode) -> list[str]:
    """Return the activations behind the end of a list of parameters that onnxruntime gives 0 instead of their defaults."""
    functions = [function for each in view.functions for function in each]
    short: list[str] = []
    for which, name in enumerate(LISTS):
        takers = [function.name for function in functions if PARAMETERS[function.name][which] is not None]
        given = view.node.attributes.get_floats(name, ())
        short += [one for one in takers[len(given) :] if one in _TAKEN_AS_0]
    return short
