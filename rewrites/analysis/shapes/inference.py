"""Infers types and shapes of all values with onnx, and removes wrong declarations of shapes.

A declaration is wrong if the operators contradict it. Tools that edit models leave old declarations behind. Exporters declare the
sizes of one traced step for the growing state of a Loop. People declare outputs by hand: they may use the name "time" both for the
steps of the input and for the fewer steps of the output. If a declaration is wrong, onnxruntime warns and uses the inferred shape,
but onnx's inference uses the declared shape.

Works around ORT-SCAN-RESULT-RANK and ONNX-STALE-DECLARATIONS.
"""

import functools
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import onnx_ir as ir

from rewrites.analysis.dependence import reads
from rewrites.analysis.shapes.bodies import infer_unknown_shapes
from rewrites.analysis.shapes.long_vectors import has_long_vectors
from rewrites.analysis.shapes.onnx_inference import infer_by_onnx
from rewrites.analysis.shapes.sizes_without_steps import declared_results, note_sizes_without_steps
from rewrites.graph.dims import differ, forgotten, meet, refined, varies
from rewrites.graph.node_inference import infer_node
from rewrites.graph.values import shape_dims
from rewrites.graph.walk import all_nodes, inner_values, node_graphs

__all__ = ["forget_stale_shapes", "infer_model"]


def infer_model(model: ir.Model) -> None:
    """Infer the types and shapes of all values of ``model``, and set them in ``model``.

    Declared shapes stay unless the operators contradict them. This function uses onnx, because no other inference correctly handles
    the bodies of both Scan-8 and later Scans, bodies without declared types, and captured values.
    """
    mapped = _remove_maps(model.graph)
    untyped = [value for node in all_nodes(model.graph) for value in node.outputs if value.type is None]
    data_prop = not has_long_vectors(model.graph, model.functions)
    opset, declared = model.opset_imports.get("", 1), declared_results(model.graph)

    def infer(proven: bool) -> Set[ir.Value]:
        _forget_variations(model.graph)
        infer_by_onnx(model, data_prop=data_prop)
        note_sizes_without_steps(model.graph, declared)
        _forget_types_of_sequences(model.graph, set(untyped))
        infer_one = functools.partial(infer_node, opsets=model.opset_imports, ir_version=model.ir_version)
        return infer_unknown_shapes(model.graph, opset, infer_one, proven=proven)

    if forget_stale_shapes(model.graph, functools.partial(infer, True)):
        infer(False)
    _forget_variations(model.graph)
    _restore_maps(model.graph, *mapped)


def _forget_variations(graph: ir.Graph) -> None:
    """Remove the names of varying dimensions. The next search gives these names to other dimensions."""
    for value in inner_values(graph):
        value.shape = forgotten(value.shape, varies)


def _remove_maps(graph: ir.Graph) -> tuple[list[ir.Node], list[ir.Value]]:
    """Remove the nodes and graph outputs that return maps. onnx_ir has no type for maps.

    Return the removed nodes, and the list of outputs before the removal.
    """
    nodes = [node for node in graph if node.op_type in _MAKE_MAPS and not any(value.uses() for value in node.outputs)]
    outputs = list(graph.outputs)
    maps = {value for node in nodes for value in node.outputs}
    graph.outputs[:] = [value for value in outputs if value not in maps]
    graph.remove(nodes)
    return nodes, outputs


def _restore_maps(graph: ir.Graph, nodes: list[ir.Node], outputs: list[ir.Value]) -> None:
    graph.extend(nodes)
    graph.outputs[:] = outputs


def forget_stale_shapes(graph: ir.Graph, infer: Callable[[], Set[ir.Value]]) -> bool:
    """Remove the declared shapes of node results and Loop states that the inferred shapes contradict.

    If the declared shape of a state is wrong, the values in its Loop keep only the shapes that ``infer`` confirms. All other values
    have their declared shapes afterwards.

    Args:
        graph: The main graph.
        infer: Infers all shapes and ignores the declared ones. Returns the states whose shape is known to change in some step.

    Returns:
        True if the shapes must be inferred once more, now with the remaining declared shapes. False if all shapes are inferred.
    """
    results = [value for node in all_nodes(graph) for value in node.outputs]
    states = [state for node in all_nodes(graph) for state in _states(node)]
    declared = {value: value.shape for value in results}
    if not states and not any(shape is not None for shape in declared.values()):
        return True
    shapes = {state.inner: state.inner.shape for state in states}
    suspects = _Doubtful()
    for _ in range(2 * len(states) + 1):
        for value in results:
            value.shape = None
        for inner, shape in shapes.items():
            inner.shape = shape
        changing = infer()
        declared = {value: None if _differs(value, shape) else shape for value, shape in declared.items()}
        wrong = [state for state in states if _is_wrong(state, shapes[state.inner], changing, suspects)]
        unruly = {state.loop for state in states if state.inner in changing and state.inner.shape is None} - suspects.loops
        if not wrong and not unruly:
            break
        shapes |= dict.fromkeys(state.inner for state in wrong)
        suspects.loops.update(unruly, (state.loop for state in wrong))
        suspects.add_dependents(graph)
    if not suspects.loops and all(shape is None or _confirms(value, shape) for value, shape in declared.items()):
        return False
    doubtful = _doubtful_names(graph, declared)
    declared |= {value: _with_proven_sizes(declared[value], value.shape, doubtful) for value in graph.outputs if value in declared}
    results_of_loops = {value for state in states for value in state.loop.outputs}
    stacked = {value for node in all_nodes(graph) if node.op_type == "Scan" for body in _bodies(node) for value in body.outputs}
    for value, shape in declared.items():
        unconfirmed = value in suspects.values and not _confirms(value, shape)
        if value not in results_of_loops or shape is not None:
            value.shape = shape
            if unconfirmed and shape is not None:  # keep the rank in a Scan: onnxruntime does not run one with unknown ranks
                value.shape = ir.Shape([None] * len(shape)) if value in stacked else None
    return True


_MAKE_MAPS = frozenset({"ZipMap"})

_MAKE_SEQUENCES = frozenset(
    ["SequenceEmpty", "SequenceConstruct", "SequenceInsert", "SequenceErase", "SequenceMap", "SplitToSequence", "Optional"]
)


def _forget_types_of_sequences(graph: ir.Graph, untyped: set[ir.Value]) -> None:
    """Remove the types of sequences and optionals among the values ``untyped``.

    These values had no declared type. onnx_ir gives them tensor types, which onnxruntime refuses.
    """
    sequences: set[ir.Value] = set()
    for node in all_nodes(graph):
        results: Sequence[ir.Value] = ()
        if node.op_type in _MAKE_SEQUENCES or (node.op_type == "Identity" and _is_no_tensor(node.inputs[0], sequences)):
            results = node.outputs
        elif node.op_type in ("If", "Loop", "OptionalGetElement"):
            results = [value for value in node.outputs if _may_be_sequence(node)]
        sequences.update(results)
    for value in sequences & untyped:
        value.type, value.shape = None, None


def _is_no_tensor(value: ir.Value | None, sequences: Set[ir.Value]) -> bool:
    return value is not None and (value in sequences or isinstance(value.type, ir.SequenceType | ir.OptionalType))


def _may_be_sequence(node: ir.Node) -> bool:
    bodies = [attribute.as_graph() for attribute in node.attributes.values() if attribute.type == ir.AttributeType.GRAPH]
    inner = [value for body in bodies for value in body.outputs]
    return not bodies or not all(isinstance(value.type, ir.TensorType) for value in inner)


@dataclass(frozen=True)
class _State:
    """A state of a Loop: ``inner`` is its value in the body, ``received`` is (initial value, next value)."""

    loop: ir.Node
    inner: ir.Value
    received: tuple[ir.Value | None, ir.Value]


@dataclass
class _Doubtful:
    """The loops and values whose declared shapes may be wrong.

    ``loops`` have a wrongly declared state, or depend on such a Loop. ``values`` are computed in these loops, or from their
    results.
    """

    loops: set[ir.Node] = field(default_factory=set)
    values: set[ir.Value] = field(default_factory=set)

    def add_dependents(self, graph: ir.Graph) -> None:
        """Add the loops and values of ``graph`` that depend on values that are already doubtful."""
        for node in graph:
            if node in self.loops or any(value in self.values for value in reads(node)):
                nested = [inner for graph_inside in node_graphs(node) for inner in all_nodes(graph_inside)]
                self.loops.update(inner for inner in (node, *nested) if _states(inner))
                self.values.update(value for inner in (node, *nested) for value in inner.outputs)
            for inner_graph in node_graphs(node):
                self.add_dependents(inner_graph)


def _states(node: ir.Node) -> list[_State]:
    """Return the states of a Loop; an empty list for any other node. A malformed Loop is refused later."""
    if node.op_type != "Loop" or node.domain != "":
        return []
    states = []
    for body in _bodies(node):
        triples = zip(body.inputs[2:], node.inputs[2:], body.outputs[1:], strict=False)
        states += [_State(node, inner, (initial, back)) for inner, initial, back in triples]
    return states


def _bodies(node: ir.Node) -> list[ir.Graph]:
    body = node.attributes.get("body")
    return [] if body is None or body.is_ref() or body.type != ir.AttributeType.GRAPH else [body.as_graph()]


def _is_wrong(state: _State, declared: ir.Shape | None, changing: Set[ir.Value], suspects: _Doubtful) -> bool:
    if declared is None:
        return False
    if state.inner in changing or any(_differs(value, declared) for value in (state.inner, *state.received)):
        return True
    return state.loop in suspects.loops and not _confirms(state.received[1], declared)


def _differs(value: ir.Value | None, declared: ir.Shape | None) -> bool:
    shape = None if value is None else value.shape
    if shape is None or declared is None:
        return False
    pairs = zip(shape.dims, declared.dims, strict=False)
    return differ(shape, declared) or any(varies(dim) and isinstance(other, int) for dim, other in pairs)


def _doubtful_names(graph: ir.Graph, declared: Mapping[ir.Value, ir.Shape | None]) -> set[str]:
    """Return the names of dimensions that may be used for different sizes by mistake.

    A name is doubtful if it occurs in graph outputs that several nodes compute, or in both a graph output and a graph input.
    """
    owners: dict[str, set[ir.Node | None]] = {}
    shapes = [(value.producer(), declared.get(value)) for value in graph.outputs] + [(None, value.shape) for value in graph.inputs]
    for node, shape in shapes:
        for name in shape_dims(shape) if shape is not None else ():
            if isinstance(name, str):
                owners.setdefault(name, set()).add(node)
    return {name for name, nodes in owners.items() if len(nodes) > 1}


def _with_proven_sizes(declared: ir.Shape | None, proven: ir.Shape | None, doubtful: Set[str]) -> ir.Shape | None:
    """Return the ``declared`` shape of a graph output without doubtful sizes.

    A size is doubtful if it is a number or one of the names ``doubtful``. A doubtful size is kept only if the inferred shape
    ``proven`` has the same size.
    """
    known = forgotten(declared, lambda dim: isinstance(dim, int) or dim.value in doubtful)
    return refined(known, meet([declared, proven]))


def _confirms(value: ir.Value, declared: ir.Shape | None) -> bool:
    return declared is not None and value.shape == declared
