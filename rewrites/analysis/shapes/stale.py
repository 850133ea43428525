"""Declared shapes of inner values that contradict the operators which compute the values.

Tools that edit models leave such value_infos behind, and exporters write the sizes of one traced step for a Loop's growing state.
onnxruntime warns and believes the operators, onnx's inference believes the declarations; a folded Shape or a count of steps must
not be made from those. Nor from the sizes that a model declares for its outputs: whoever exports a model writes them by hand,
"time" may name the steps of the input and the fewer steps of the output alike, and ``fix_shapes`` makes numbers of such names.

Works round ORT-SCAN-RESULT-RANK and ONNX-STALE-DECLARATIONS.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field

import onnx_ir as ir

from rewrites.analysis.dependence import reads
from rewrites.graph.dims import differ, forgotten, meet, refined, varies
from rewrites.graph.values import shape_dims
from rewrites.graph.walk import all_nodes, node_graphs

__all__ = ["forget_stale_shapes"]


@dataclass(frozen=True)
class _State:
    """A Loop's state: ``inner`` as the body sees it, ``given`` what it gets, before the first step and after each."""

    loop: ir.Node
    inner: ir.Value
    given: tuple[ir.Value | None, ir.Value]


def forget_stale_shapes(graph: ir.Graph, infer: Callable[[], Set[ir.Value]]) -> bool:
    """Take away the declared shapes of node results, bodies included, that ``infer`` contradicts where it is not told them.

    ``infer`` gives the body inputs of the states that some step surely changes. The same for the declared shapes of the states of
    Loops; in a Loop of which that is wrong, and in all that is made from its results, what ``infer`` does not confirm goes too. All
    other shapes are as they were declared afterwards, and what Loops give keeps what was found. Gives whether there is something to
    infer with what is declared; else ``infer`` has found all it can, and that is kept.
    """
    results = [value for node in all_nodes(graph) for value in node.outputs]
    states = [state for node in all_nodes(graph) for state in _states(node)]
    declared = {value: value.shape for value in results}
    if not states and not any(shape is not None for shape in declared.values()):
        return True
    shapes = {state.inner: state.inner.shape for state in states}
    doubted = _Doubted()
    for _ in range(2 * len(states) + 1):
        for value in results:
            value.shape = None
        for inner, shape in shapes.items():
            inner.shape = shape
        changing = infer()
        declared = {value: None if _differs(value, shape) else shape for value, shape in declared.items()}
        wrong = [state for state in states if _is_wrong(state, shapes[state.inner], changing, doubted)]
        unruly = {state.loop for state in states if state.inner in changing and state.inner.shape is None} - doubted.loops
        if not wrong and not unruly:
            break
        shapes |= dict.fromkeys(state.inner for state in wrong)
        doubted.loops.update(unruly, (state.loop for state in wrong))
        doubted.spread(graph)
    if not doubted.loops and all(shape is None or _confirms(value, shape) for value, shape in declared.items()):
        return False
    doubtful = _doubtful_names(graph, declared)
    declared |= {value: _with_proven_sizes(declared[value], value.shape, doubtful) for value in graph.outputs if value in declared}
    given = {value for state in states for value in state.loop.outputs}
    stacked = {value for node in all_nodes(graph) if node.op_type == "Scan" for body in _bodies(node) for value in body.outputs}
    for value, shape in declared.items():
        unconfirmed = value in doubted.values and not _confirms(value, shape)
        if value not in given or shape is not None:
            value.shape = shape
            if unconfirmed and shape is not None:  # onnxruntime runs no Scan whose results have no rank
                value.shape = ir.Shape([None] * len(shape)) if value in stacked else None
    return True


@dataclass
class _Doubted:
    """``loops`` with states declared wrong or made from their results, and the ``values`` in them and made from them."""

    loops: set[ir.Node] = field(default_factory=set)
    values: set[ir.Value] = field(default_factory=set)

    def spread(self, graph: ir.Graph) -> None:
        """Doubt all that is made from what is doubted."""
        for node in graph:
            if node in self.loops or any(value in self.values for value in reads(node)):
                nested = [inner for one in node_graphs(node) for inner in all_nodes(one)]
                self.loops.update(inner for inner in (node, *nested) if _states(inner))
                self.values.update(value for inner in (node, *nested) for value in inner.outputs)
            for inner_graph in node_graphs(node):
                self.spread(inner_graph)


def _states(node: ir.Node) -> list[_State]:
    """Return the states of a Loop; a malformed one is refused later, not here."""
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


def _is_wrong(state: _State, declared: ir.Shape | None, changing: Set[ir.Value], doubted: _Doubted) -> bool:
    if declared is None:
        return False
    if state.inner in changing or any(_differs(value, declared) for value in (state.inner, *state.given)):
        return True
    return state.loop in doubted.loops and not _confirms(state.given[1], declared)


def _differs(value: ir.Value | None, declared: ir.Shape | None) -> bool:
    found = None if value is None else value.shape
    if found is None or declared is None:
        return False
    pairs = zip(found.dims, declared.dims, strict=False)
    return differ(found, declared) or any(varies(one) and isinstance(other, int) for one, other in pairs)


def _doubtful_names(graph: ir.Graph, declared: Mapping[ir.Value, ir.Shape | None]) -> set[str]:
    """Return the names that outputs of one node share with inputs, or with those of another node."""
    owners: dict[str, set[ir.Node | None]] = {}
    shapes = [(value.producer(), declared.get(value)) for value in graph.outputs] + [(None, value.shape) for value in graph.inputs]
    for node, shape in shapes:
        for name in shape_dims(shape) if shape is not None else ():
            if isinstance(name, str):
                owners.setdefault(name, set()).add(node)
    return {name for name, nodes in owners.items() if len(nodes) > 1}


def _with_proven_sizes(declared: ir.Shape | None, found: ir.Shape | None, doubtful: Set[str]) -> ir.Shape | None:
    """Return what is ``declared`` of an output without the numbers and the ``doubtful`` names that were not ``found`` too."""
    known = forgotten(declared, lambda dim: isinstance(dim, int) or dim.value in doubtful)
    return refined(known, meet([declared, found]))


def _confirms(value: ir.Value, declared: ir.Shape | None) -> bool:
    return declared is not None and value.shape == declared
