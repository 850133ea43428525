"""Declared shapes of inner values that contradict the operators which compute the values.

Tools that edit models leave such value_infos behind. onnxruntime warns and believes the operators, onnx's inference believes the
declarations; a folded Shape or a count of steps must not be made from those.
"""

from collections.abc import Callable

import onnx_ir as ir

__all__ = ["forget_stale_shapes"]


def forget_stale_shapes(graph: ir.Graph, infer: Callable[[], object]) -> None:
    """Take away the declared shapes of node results, bodies included, that ``infer`` contradicts where it is not told them.

    All other shapes of node results are as they were declared afterwards; what ``infer`` found is forgotten.
    """
    results = [value for node in graph.all_nodes() for value in node.outputs]
    declared = {value: value.shape for value in results}
    if not any(shape is not None for shape in declared.values()):
        return
    for value in results:
        value.shape = None
    infer()
    for value, shape in declared.items():
        value.shape = None if shape is not None and _contradicts(value.shape, shape) else shape


def _contradicts(found: ir.Shape | None, declared: ir.Shape) -> bool:
    if found is None:
        return False
    if len(found) != len(declared):
        return True
    pairs = zip(found.dims, declared.dims, strict=True)
    return any(isinstance(one, int) and isinstance(other, int) and one != other for one, other in pairs)
