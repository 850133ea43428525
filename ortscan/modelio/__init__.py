"""Load a caller's model as an ``onnx_ir.Model``, and convert it back to the caller's type.

In between, rules rewrite the model. The result keeps the declared inputs and outputs of the caller's model.

This package reads and writes models, and rejects malformed ones. It does not decide how a model is rewritten.
"""

from ortscan.modelio.built_in import listed_defaults, with_constant_inputs
from ortscan.modelio.functions import Inlining, inline_functions, inline_functions_with_loops
from ortscan.modelio.interface import Interface
from ortscan.modelio.loaded import (
    LoadedModel,
    declare_current_types,
    declare_negative_sizes_free,
    reopened,
    restore_interface,
    sealed,
    settle_new_initializers,
    to_proto,
    unsettle_initializers,
)
from ortscan.modelio.loading import AnyModel, ModelLike, load
from ortscan.modelio.saving import return_model, save, to_caller_type
from ortscan.modelio.tensors import AbsentTensor

__all__ = [
    "AbsentTensor",
    "AnyModel",
    "Inlining",
    "Interface",
    "LoadedModel",
    "ModelLike",
    "declare_current_types",
    "declare_negative_sizes_free",
    "inline_functions",
    "inline_functions_with_loops",
    "listed_defaults",
    "load",
    "reopened",
    "restore_interface",
    "return_model",
    "save",
    "sealed",
    "settle_new_initializers",
    "to_caller_type",
    "to_proto",
    "unsettle_initializers",
    "with_constant_inputs",
]
