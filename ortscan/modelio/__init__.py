"""The border between a caller's model and the ``onnx_ir.Model`` that rules work on.

Reading, refusing what is malformed, keeping the interface and external data, writing. What a model means, and what becomes of it,
is not decided here.
"""

from ortscan.modelio.functions import Inlining, inline_functions, inline_functions_with_loops
from ortscan.modelio.interface import Interface
from ortscan.modelio.loaded import (
    LoadedModel,
    restore_interface,
    retake_interface,
    sealed,
    settle_new_initializers,
    to_proto,
    unsettle,
)
from ortscan.modelio.loading import ModelLike, load
from ortscan.modelio.saving import give_back, hand_back, save
from ortscan.modelio.tensors import AbsentTensor

__all__ = [
    "AbsentTensor",
    "Inlining",
    "Interface",
    "LoadedModel",
    "ModelLike",
    "give_back",
    "hand_back",
    "inline_functions",
    "inline_functions_with_loops",
    "load",
    "restore_interface",
    "retake_interface",
    "save",
    "sealed",
    "settle_new_initializers",
    "to_proto",
    "unsettle",
]
