"""Declared shapes of inner values that contradict the operators which compute the values.

Tools that edit models leave such value_infos behind, and exporters write the sizes of one traced step for a Loop's growing state.
onnxruntime warns and believes the operators, onnx's inference believes the declarations; a folded Shape or a count of steps must
not be made from those.
"""

from collections.abc import Callable
from dataclasses import dataclass

import onnx_ir as ir

__all__ = ["forget_stale_shapes"]


@dataclass(frozen=True)
class _State:
    """A Loop's state: ``inner`` as the body sees it, ``given`` what it gets, before the first step and after each."""

    loop: ir.Node
    inner: ir.Value
    given: tuple[ir.Value | None, ir.Value]


def forget_stale_shapes(graph: ir.Graph, infer: Callable[[], object]) -> bool:
    """Take away the declared shapes of node results, bodies included, that ``infer`` contradicts where it is not told them.

    The same for the states of Loops, where a step would give another shape than it was declared to get; in such a Loop, what
    ``infer`` does not confirm goes too. All other shapes are as they were declared afterwards. Gives whether there is something to
    infer with what is declared; else ``infer`` has found all it can, and that is kept.
    """
    results = [value for node in graph.all_nodes() for value in node.outputs]
    states = [state for node in graph.all_nodes() for state in _states(node)]
    declared = {value: value.shape for value in results}
    if not states and not any(shape is not None for shape in declared.values()):
        return True
    shapes = {state.inner: state.inner.shape for state in states}
    lying: set[ir.Node] = set()
    for _ in range(len(states) + 1):
        for value in results:
            value.shape = None
        infer()
        declared = {value: None if _differs(value, shape) else shape for value, shape in declared.items()}
        wrong = [state for state in states if _is_wrong(state, shapes[state.inner], lying)]
        lying.update(state.loop for state in wrong)
        shapes |= dict.fromkeys(state.inner for state in wrong)
        for inner, shape in shapes.items():
            inner.shape = shape
        if not wrong:
            break
    within = {value for loop in lying for body in _bodies(loop) for node in body.all_nodes() for value in node.outputs}
    if not lying and all(shape is None or _confirms(value, shape) for value, shape in declared.items()):
        return False
    for value, shape in declared.items():
        value.shape = None if value in within and not _confirms(value, shape) else shape
    return True


def _states(node: ir.Node) -> list[_State]:
    """Give the states of a Loop; a malformed one is refused later, not here."""
    if node.op_type != "Loop" or node.domain != "":
        return []
    found = []
    for body in _bodies(node):
        given = zip(body.inputs[2:], node.inputs[2:], body.outputs[1:], strict=False)
        found += [_State(node, inner, (initial, back)) for inner, initial, back in given]
    return found


def _bodies(node: ir.Node) -> list[ir.Graph]:
    body = node.attributes.get("body")
    return [] if body is None or body.is_ref() or body.type != ir.AttributeType.GRAPH else [body.as_graph()]


def _is_wrong(state: _State, declared: ir.Shape | None, lying: set[ir.Node]) -> bool:
    if declared is None:
        return False
    if any(_differs(value, declared) for value in state.given):
        return True
    return state.loop in lying and not _confirms(state.given[1], declared)


def _differs(value: ir.Value | None, declared: ir.Shape | None) -> bool:
    found = None if value is None else value.shape
    if found is None or declared is None:
        return False
    if len(found) != len(declared):
        return True
    pairs = zip(found.dims, declared.dims, strict=True)
    return any(isinstance(one, int) and isinstance(other, int) and one != other for one, other in pairs)


def _confirms(value: ir.Value, declared: ir.Shape | None) -> bool:
    return value.shape is not None and declared is not None and list(value.shape.dims) == list(declared.dims)
