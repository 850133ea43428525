"""Outputs of a model that declare sizes which inference does not confirm, and that nodes read.

    y = Scan (x)    y declared as [4, 1]    ->    y_inside = Scan (x)
    n = Shape (y)                                 n = Shape (y_inside)
                                                  y = Identity (y_inside)    y declared as [4, 1]

onnxruntime believes what an output declares: it folds the Shape to the declared sizes and plans buffers of that size, although
the output may have others. It warns of them when the model runs, and returns the output as it is.
"""

from collections.abc import Mapping

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.replace import replace_output

__all__ = ["detach_unproven_outputs"]


def detach_unproven_outputs(ctx: Context, declared: Mapping[str, ir.Shape]) -> None:
    """Let nodes read such outputs before an Identity that declares the sizes.

    Args:
        ctx: the model, whose outputs have the shapes that were inferred.
        declared: the shapes that the model declares for its outputs, by name.
    """
    for value in list(ctx.model.graph.outputs):
        shape = declared.get(value.name or "")
        if value.producer() is None or shape is None or not value.uses() or _is_confirmed(shape, value.shape):
            continue
        node = ir.Node("", "Identity", [value], name=ctx.names.fresh("node_Identity"))
        ctx.model.graph.append(node)
        replace_output(value, node.outputs[0], ctx.names)


def _is_confirmed(declared: ir.Shape, inferred: ir.Shape | None) -> bool:
    """Return True if every number that is declared was inferred too."""
    numbers = [(axis, dim) for axis, dim in enumerate(declared.dims) if isinstance(dim, int)]
    if inferred is None or len(inferred) != len(declared):
        return not numbers
    return all(inferred.dims[axis] == dim for axis, dim in numbers)
