"""Inserts an Identity before outputs of a loop's body that onnxruntime otherwise computes wrongly.

Such outputs are, for example, a value that a Scan body returns twice, and the step number of a Loop.

Works around ORT-SCAN-SHARED-OUTPUT and ORT-LOOP-STEP-NUMBER.
"""

import onnx_ir as ir

from rewrites.graph.names import Names
from rewrites.loops.loop_view import LoopView
from rewrites.loops.view import Loop

__all__ = ["append_copy", "copy_outputs", "give_own_nodes", "outputs_without_own_node", "wrongly_computed_outputs"]


def wrongly_computed_outputs(loop: Loop) -> list[int]:
    """Return the positions of the outputs of the body of ``loop`` that onnxruntime computes wrongly."""
    if isinstance(loop, LoopView):
        return [i for i, value in enumerate(loop.body.outputs) if value is loop.iteration]
    return outputs_without_own_node(loop.body)


def outputs_without_own_node(body: ir.Graph) -> list[int]:
    """Return the positions of repeated outputs of ``body`` and of outputs that no node of it computes."""
    seen: set[ir.Value] = set()
    positions = []
    for i, value in enumerate(body.outputs):
        producer = value.producer()
        if value in seen or producer is None or producer.graph is not body:
            positions.append(i)
        seen.add(value)
    return positions


def give_own_nodes(body: ir.Graph, names: Names) -> None:
    """Replace each output of ``body`` that ``outputs_without_own_node`` finds by a copy."""
    copy_outputs(body, outputs_without_own_node(body), names)


def copy_outputs(body: ir.Graph, positions: list[int], names: Names) -> None:
    """Replace the outputs of ``body`` at ``positions`` by copies."""
    for i in positions:
        body.outputs[i] = append_copy(body, body.outputs[i], names)


def append_copy(body: ir.Graph, value: ir.Value, names: Names) -> ir.Value:
    """Append an Identity of ``value`` to ``body``, and return its result."""
    copy = ir.Value(name=names.fresh(f"{value.name}_out"), type=value.type, shape=value.shape)
    body.append(ir.Node("", "Identity", [value], outputs=[copy], name=names.fresh(f"{value.name}/Identity")))
    return copy
