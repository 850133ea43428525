"""Hide bounds of Slices from onnx's inference, if onnx would infer wrong shapes from these bounds.

    part = Slice (shape, start, {2})    ->    same = Equal (start, start)  start_1 = Compress (start, same)
                                              part = Slice (shape, start_1, {2})

Suppose that a Slice reads a vector of sizes, and that its ``start`` is unknown. onnx 1.23 then assumes a ``start`` of 0, and infers
a wrong size of ``part``. If ``part`` is the shape of another value, onnx infers a wrong rank of that value. onnx does not infer the
size of a Compress, so it infers no rank if a Compress computes ``start_1``.

onnx then rejects the rewritten model, because the wrong rank contradicts a declared shape. The declared shape is right. onnx may
accept the original nevertheless, because it does not notice this contradiction in a Loop or an If.

Works around ONNX-SLICE-UNKNOWN-BOUNDS.
"""

from collections.abc import Iterator

import onnx_ir as ir

from ortscan.modelio.loaded import LoadedModel, to_proto
from ortscan.ort.model_errors import without_weights
from ortscan.soundness.strict_inference import inference_fault
from rewrites.graph.names import Names
from rewrites.graph.values import const_array, rank_of
from rewrites.graph.walk import inner_graphs

__all__ = ["hide_bounds_of_slices"]

_BOUNDS_ARE_INPUTS = 10


def hide_bounds_of_slices(after: LoadedModel) -> bool:
    """Hide unknown bounds of Slices in ``after``, if this makes onnx's strict inference accept the model.

    Return True if the model was changed. The model stays unchanged if the inference accepts it as it is, or rejects it even with
    hidden bounds.
    """
    slices = list(_slices(after.model))
    if not slices or _is_accepted(after):
        return False
    names = Names(after.model)
    hidden = [_hide(node, names) for node in slices]
    if _is_accepted(after):
        after.judged = None
        return True
    for node, start in hidden:
        _show(node, start)
    return False


def _is_accepted(after: LoadedModel) -> bool:
    return inference_fault(after, without_weights(to_proto(after))) is None


def _slices(model: ir.Model) -> Iterator[ir.Node]:
    """Yield each Slice that may read a vector of sizes and has unknown bounds. Search functions too."""
    owners: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for owner in owners:
        imports = model.opset_imports if isinstance(owner, ir.Graph) else owner.opset_imports
        if imports.get("", 0) >= _BOUNDS_ARE_INPUTS:
            graphs: list[ir.Graph | ir.Function] = [owner, *inner_graphs(owner)]
            for graph in graphs:
                yield from [node for node in graph if node.op_type == "Slice" and node.domain == "" and _is_misread(node)]


def _is_misread(node: ir.Node) -> bool:
    data, *bounds = node.inputs
    if data is None or rank_of(data) not in (None, 1) or data.dtype not in (None, ir.DataType.INT64):
        return False
    return any(bound is not None and (bound.graph is not node.graph or const_array(bound) is None) for bound in bounds)


def _hide(node: ir.Node, names: Names) -> tuple[ir.Node, ir.Value]:
    """Put an Equal and a Compress in front of the first bound of ``node``. Return ``node`` and this bound."""
    start = node.inputs[1]
    assert start is not None
    assert node.graph is not None
    same = ir.node("Equal", [start, start])
    hidden = ir.node("Compress", [start, same.outputs[0]], {"axis": 0})
    for new in (same, hidden):
        new.name = names.fresh(f"node_{new.op_type}")
        new.outputs[0].name = names.fresh(f"{start.name or 'start'}_hidden")
    node.graph.insert_before(node, [same, hidden])
    node.replace_input_with(1, hidden.outputs[0])
    return node, start


def _show(node: ir.Node, start: ir.Value) -> None:
    """Undo ``_hide``."""
    hidden = node.inputs[1]
    assert hidden is not None
    assert node.graph is not None
    compress = hidden.producer()
    assert compress is not None
    assert compress.inputs[1] is not None
    node.replace_input_with(1, start)
    node.graph.remove([compress, compress.inputs[1].producer()], safe=True)  # type: ignore[list-item]
