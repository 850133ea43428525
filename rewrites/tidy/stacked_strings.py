"""Strings that a Loop stacks, and that onnxruntime takes away from another value by it.

onnxruntime moves strings out of each step's result into the stack. Where the result is an Identity of another value, or is
returned or copied elsewhere too, that value loses its strings: the steps after the first, and who reads it, find empty ones.

Works round ORT-LOOP-STACKED-STRINGS.
"""

import onnx_ir as ir

from rewrites.loops import LoopView, loops_in, view

__all__ = ["stacks_of_taken_strings"]


def stacks_of_taken_strings(graph: ir.Graph, opset: int) -> list[tuple[ir.Graph, int]]:
    """Return the bodies of Loops, and the positions of their outputs, that take strings from another value."""
    found = []
    for node in loops_in(graph):
        if node.op_type != "Loop" or not any(value.dtype == ir.DataType.STRING for value in node.outputs):
            continue
        loop = view(node, opset)
        assert isinstance(loop, LoopView)
        stacked = {id(output.inner): output.inner for output in loop.scan_outputs if output.inner.dtype == ir.DataType.STRING}
        for position, value in enumerate(loop.body.outputs):
            if position > len(loop.states) and id(value) in stacked and _shares(value, loop.body):
                found.append((loop.body, position))
    return found


def _shares(value: ir.Value, body: ir.Graph) -> bool:
    producer = value.producer()
    if producer is None or producer.graph is not body or producer.op_type == "Identity":
        return True
    copied = any(user.op_type == "Identity" for user, _ in value.uses())
    return copied or sum(value is output for output in body.outputs) > 1
