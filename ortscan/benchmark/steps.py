"""The free dimensions of a model's inputs that its loops run over."""

from collections.abc import Sequence

import onnx
import onnx_ir as ir

from ortscan.running.analysis import Analysis, analyse
from ortscan.running.specs import Spec
from rewrites.analysis.induction.affine_expression import Dim
from rewrites.analysis.induction.integers import Integers
from rewrites.base.raised_by import is_from_elsewhere
from rewrites.graph.walk import all_nodes
from rewrites.loops import LoopView, is_loop, view

__all__ = ["dims_of_steps"]

_RECURRENT = ("RNN", "GRU", "LSTM")


def dims_of_steps(proto: onnx.ModelProto, specs: Sequence[Spec]) -> set[str]:
    """Return their names, as far as the graph tells: this only helps to choose sizes, so a graph that cannot be read has none."""
    try:
        analysis = analyse(proto, specs)
        return {name for node in all_nodes(analysis.model.graph) for name in _dims(node, analysis) if isinstance(name, str)}
    except Exception as error:
        if is_from_elsewhere(error):
            raise
        return set()


def _dims(node: ir.Node, analysis: Analysis) -> list[int | str | None]:
    if node.op_type in _RECURRENT:
        return [analysis.dim(node.inputs[0], 0)]
    if not is_loop(node):
        return []
    opset = analysis.model.opset_imports[""]
    loop = view(node, opset)
    if not isinstance(loop, LoopView):
        return [analysis.dim(scan.outer, scan.axis) for scan in loop.scan_inputs]
    limit = None if loop.limit is None else Integers(opset).scalar(loop.limit)
    return [] if limit is None else [analysis.dim(one.value, one.axis) for one in limit.terms if isinstance(one, Dim)]
