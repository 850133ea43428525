"""Runs a few nodes on constants, by the runtime that the context gives."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx
import onnx_ir as ir

from rewrites.graph.context import Context

__all__ = ["evaluate_nodes"]


def evaluate_nodes(
    nodes: Sequence[onnx.NodeProto], constants: Mapping[ir.Value, np.ndarray], wanted: Iterable[ir.Value], ctx: Context
) -> Sequence[np.ndarray] | None:
    """Return what ``nodes`` (producers before users) compute for ``wanted`` from ``constants``; None where the runtime cannot."""
    tensors = [ir.serde.serialize_tensor(ir.tensor(array, name=value.name)) for value, array in constants.items()]
    outputs = [onnx.helper.make_value_info(value.name or "", onnx.TypeProto()) for value in wanted]
    graph = onnx.helper.make_graph(list(nodes), "constants", [], outputs, tensors)
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in ctx.model.opset_imports.items()]
    version = max(4, min(ctx.model.ir_version, 10))
    return ctx.evaluate(onnx.helper.make_model(graph, opset_imports=imports, ir_version=version))
