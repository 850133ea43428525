"""Declared shapes of inner values that contradict the operators which compute the values.

Tools that edit models leave such value_infos behind, and exporters write the sizes of one traced step for a Loop's growing state.
onnxruntime warns and believes the operators, onnx's inference believes the declarations; a folded Shape or a count of steps must
not be made from those.
"""

from collections.abc import Callable

import onnx_ir as ir

__all__ = ["forget_stale_shapes"]


def forget_stale_shapes(graph: ir.Graph, infer: Callable[[], object]) -> None:
    """Take away the declared shapes of node results, bodies included, that ``infer`` contradicts where it is not told them.

    The same for the states of Loops, where a step would give another shape than it was declared to get. All other shapes are as
    they were declared afterwards; what ``infer`` found is forgotten.
    """
    results = [value for node in graph.all_nodes() for value in node.outputs]
    loops = [node for node in graph.all_nodes() if node.op_type == "Loop" and node.domain == ""]
    declared = {value: value.shape for value in results}
    if not loops and not any(shape is not None for shape in declared.values()):
        return
    states = [state for node in loops for state in _states(node)]
    shapes = {inner: inner.shape for inner, _ in states}
    for _ in range(len(states) + 1):
        for value in results:
            value.shape = None
        infer()
        declared = {value: None if _differs(value, shape) else shape for value, shape in declared.items()}
        wrong = {inner for inner, given in states if any(_differs(value, shapes[inner]) for value in given)}
        shapes |= dict.fromkeys(wrong)
        for inner, shape in shapes.items():
            inner.shape = shape
        if not wrong:
            break
    for value, shape in declared.items():
        value.shape = shape


def _states(node: ir.Node) -> list[tuple[ir.Value, list[ir.Value | None]]]:
    """Give each state of a Loop, as its body sees it, with the values it gets; a malformed Loop is refused later, not here."""
    body = node.attributes.get("body")
    if body is None or body.is_ref() or body.type != ir.AttributeType.GRAPH:
        return []
    graph = body.as_graph()
    given = zip(graph.inputs[2:], node.inputs[2:], graph.outputs[1:], strict=False)
    return [(inner, [initial, back]) for inner, initial, back in given]


def _differs(value: ir.Value | None, declared: ir.Shape | None) -> bool:
    found = None if value is None else value.shape
    if found is None or declared is None:
        return False
    if len(found) != len(declared):
        return True
    pairs = zip(found.dims, declared.dims, strict=True)
    return any(isinstance(one, int) and isinstance(other, int) and one != other for one, other in pairs)
