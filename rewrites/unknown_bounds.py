"""Bounds of a Slice that onnx's inference does not know are kept from it, since it takes them for 0.

    shape = Shape(x)  part = Slice(shape, start, {2})    ->    part = Slice(shape, <something of which nothing is known>, {2})

Where such a Slice is one of sizes, onnx 1.23 would find ranks that contradict all that is right. It knows the constants of the
graph in which the Slice stands alone, none of those around it. Nothing is changed but the model that onnx is shown.
"""

from collections.abc import Iterator

import onnx

__all__ = ["hide_unknown_bounds"]

_BOUNDS_ARE_INPUTS = 10
_UNKNOWN = "bounds onnx does not know"


def hide_unknown_bounds(proto: onnx.ModelProto) -> None:
    """Let each Slice of ``proto`` whose bounds are not constants of its own graph begin at a new input, of no type."""
    if not any(entry.domain in ("", "ai.onnx") and entry.version >= _BOUNDS_ARE_INPUTS for entry in proto.opset_import):
        return
    hidden = False
    for graph in _graphs(proto.graph):
        slices = [node for node in graph.node if node.op_type == "Slice" and len(node.input) > 2]
        if slices:
            known = {tensor.name for tensor in graph.initializer}
            known.update(node.output[0] for node in graph.node if node.op_type == "Constant")
            for node in slices:
                if not known.issuperset(node.input[1:3]):
                    node.input[1] = _UNKNOWN
                    hidden = True
    if hidden:
        proto.graph.input.add(name=_UNKNOWN)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    pending = [graph]
    while pending:
        one = pending.pop()
        yield one
        for node in one.node:
            for attribute in node.attribute:
                pending.extend([attribute.g] if attribute.HasField("g") else attribute.graphs)
