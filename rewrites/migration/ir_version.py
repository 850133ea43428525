"""Raises the version of the format to what an operator set demands; it is never lowered.

    IR 3, opset 16  g(x, W) {W = ...}  ->  IR 8, opset 16  g(x) {W = ...}

In version 3 every initializer is listed among the inputs and is a constant all the same; from version 4 on a listed one would be
an input with a default, so those leave the list.
"""

import onnx
import onnx_ir as ir

__all__ = ["raise_ir_version"]

_UNLISTED_SINCE = 4


def raise_ir_version(model: ir.Model) -> None:
    """Raise the IR version of ``model`` to the least its operator sets and its functions allow."""
    least = max(_least(domain, version) for domain, version in [("", 1), *model.opset_imports.items()])
    if model.ir_version < _UNLISTED_SINCE and any(not value.is_graph_input() for value in model.graph.initializers.values()):
        least = max(least, _UNLISTED_SINCE)
    if model.ir_version >= least:
        return
    if model.ir_version < _UNLISTED_SINCE <= least:
        for graph in model.graphs():
            for value in [value for value in graph.inputs if value.is_initializer()]:
                graph.inputs.remove(value)
    model.ir_version = least


def _least(domain: str, version: int) -> int:
    """Return the IR version of the first release that had this operator set; the oldest where onnx does not know."""
    try:
        return int(onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid(domain, version)], ignore_unknown=True))
    except ValueError:
        return 1
