"""Separates an output of a model from its users if shape inference cannot confirm its declared sizes.

    y = Scan (x)    y declared as [4, 1]    ->    y_inside = Scan (x)
    n = Shape (y)                                 n = Shape (y_inside)
                                                  y = Identity (y_inside)    y declared as [4, 1]

onnxruntime trusts the declared sizes, although the real sizes of the output may differ. It replaces the Shape by the declared
sizes, and plans buffers of these sizes. At run time it only warns, and returns the output with its real sizes.
"""

from collections.abc import Mapping

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.replace import replace_output

__all__ = ["detach_unproven_outputs"]


def detach_unproven_outputs(ctx: Context, declared: Mapping[str, ir.Shape]) -> None:
    """Insert an Identity before each output whose declared sizes shape inference does not confirm.

    Other nodes that read the output then read the input of the Identity.

    Args:
        ctx: The context of the model. The outputs of this model have their inferred shapes.
        declared: The declared shapes of the outputs, by name.
    """
    for value in list(ctx.model.graph.outputs):
        shape = declared.get(value.name or "")
        if value.producer() is None or shape is None or not value.uses() or _is_confirmed(shape, value.shape):
            continue
        node = ir.Node("", "Identity", [value], name=ctx.names.fresh("node_Identity"))
        ctx.model.graph.append(node)
        replace_output(value, node.outputs[0], ctx.names)


def _is_confirmed(declared: ir.Shape, inferred: ir.Shape | None) -> bool:
    """Return True if every size that is declared as a number was also inferred."""
    numbers = [(axis, dim) for axis, dim in enumerate(declared.dims) if isinstance(dim, int)]
    if inferred is None or len(inferred) != len(declared):
        return not numbers
    return all(inferred.dims[axis] == dim for axis, dim in numbers)
