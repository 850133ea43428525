"""The border between a caller's model and the ``onnx_ir.Model`` that rules work on.

Reading, refusing what is malformed, keeping the interface and external data, writing. What a model means, and what becomes of it,
is not decided here.
"""

from ortscan.modelio.built_in import listed_defaults, with_inputs_built_in
from ortscan.modelio.functions import Inlining, inline_functions, inline_functions_with_loops
from ortscan.modelio.interface import Interface
from ortscan.modelio.loaded import (
    LoadedModel,
    declare_negative_sizes_free,
    restore_interface,
    retake_interface,
    sealed,
    settle_new_initializers,
    to_proto,
    unsettle,
)
from ortscan.modelio.loading import AnyModel, ModelLike, load
from ortscan.modelio.saving import give_back, hand_back, save
from ortscan.modelio.tensors import AbsentTensor

__all__ = [
    "AbsentTensor",
    "AnyModel",
    "Inlining",
    "Interface",
    "LoadedModel",
    "ModelLike",
    "declare_negative_sizes_free",
    "give_back",
    "hand_back",
    "inline_functions",
    "inline_functions_with_loops",
    "listed_defaults",
    "load",
    "restore_interface",
    "retake_interface",
    "save",
    "sealed",
    "settle_new_initializers",
    "to_proto",
    "unsettle",
    "with_inputs_built_in",
]
