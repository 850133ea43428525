"""Refuses operators that changed in an opset newer than those known here: what they mean now is not known."""

import onnx
import onnx_ir as ir

from rewrites.base.errors import UnsupportedModel
from rewrites.graph.walk import all_nodes
from rewrites.migration.versions import NEWEST, since, versions_of

__all__ = ["refuse_newer_operators"]


def refuse_newer_operators(model: ir.Model, name: str) -> None:
    """Raise UnsupportedModel where the opset of ``model`` gives one of its operators a meaning that is not known here.

    An operator that is new altogether passes, since no rule takes it for another. An opset that onnx does not know does not pass.
    """
    opset = model.opset_imports.get("", 1)
    if opset <= NEWEST:
        return
    newest = onnx.defs.onnx_opset_version()
    if opset > newest:
        raise UnsupportedModel(f"{name} is of opset {opset}; the newest that onnx {onnx.__version__} knows is {newest}.")
    for node in (*all_nodes(model.graph), *(node for one in model.functions.values() for node in all_nodes(one))):
        known = versions_of(node.op_type) if node.domain == "" else ()
        if known and known[0] <= NEWEST < since(node.op_type, opset):
            changed = f"{node.op_type} '{node.name}' is not what it was in {NEWEST}, the newest known here"
            raise UnsupportedModel(f"{name} is of opset {opset}, in which {changed}.")
