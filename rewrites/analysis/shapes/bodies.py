"""Infers the shapes in loop bodies and branches, and the shapes of a Loop's results.

- Scan: each input of the body has the same shape in all steps, and so has every value computed from the inputs.
- If: the result has only the sizes that both branches return.
- Loop: any step may change the shape of a state, so onnx infers no shape for states. This module infers the body from the shapes of
  the initial values. If the body returns the same shapes, they hold for all steps by induction. If a step changes a size, the size
  gets a special name (see ``varies``), and the body is inferred again until nothing changes. Declared shapes of states are ignored,
  because they may be wrong.

Works around ONNX-CAPTURED-CONSTANTS.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import onnx_ir as ir

from rewrites.base.errors import MalformedLoop
from rewrites.graph.dims import (
    VARIES,
    Dim,
    differ,
    forgotten,
    is_unknown,
    meet,
    refined,
    same,
    varies,
    with_axes,
    without_axis,
    without_names,
)
from rewrites.graph.node_inference import is_inferred_here, put_shapes, shapes_of
from rewrites.graph.walk import inner_values, node_graphs
from rewrites.loops import Loop, LoopView, ScanView, is_loop, view

__all__ = ["ShapeWalk", "has_unknown_shape", "infer_body", "infer_unknown_shapes", "scan_result_shapes"]


def has_unknown_shape(value: ir.Value) -> bool:
    """Return True if the shape of ``value`` is unknown and ``value`` may be a tensor."""
    return value.shape is None and isinstance(value.type, ir.TensorType | None)


def scan_result_shapes(loop: ScanView, *, keep_names: bool) -> dict[ir.Value | None, ir.Shape | None]:
    """Return the shapes of the results of the Scan ``loop``, derived from the shapes in its body.

    ``keep_names``: True to keep the names of dimensions. Otherwise, named dimensions become unknown.
    """
    shapes = {state.final: state.initial.shape for state in loop.states}
    for output in loop.scan_outputs:
        shape = output.inner.shape if keep_names else without_names(output.inner.shape)
        rank = 0 if shape is None else len(shape)
        shapes[output.outer] = with_axes(shape, output.axis % (rank + 1), loop.steps)
    return shapes


@dataclass
class ShapeWalk:
    """Infers shapes in a graph and its nested graphs, in topological order.

    Args:
        opset: The version of the standard operator set.
        infer: Infers the results of a node without nested graphs.
        infer_loop: Infers the results of a Loop.
        merge_branches: Merges the shapes that the branches of an If return for one result.
        forgets_shapes: True to forget the known shapes of all node results, and to infer them from the inputs of the graph. A
            dimension with the same name inside and outside of a body then has the same size. False to keep known shapes.
        use_declared_rows: True to use the declared shapes of rows in the body of a Scan, for scanned tensors of unknown shape.
        inferred: The values whose shapes were inferred.
    """

    opset: int
    infer: Callable[[ir.Node], None]
    infer_loop: Callable[[LoopView], None]
    merge_branches: Callable[[Sequence[ir.Shape | None]], ir.Shape | None] = meet
    forgets_shapes: bool = True
    use_declared_rows: bool = False
    inferred: set[ir.Value] = field(default_factory=set)

    def infer_graph(self, graph: ir.Graph) -> None:
        """Infer the shapes in ``graph`` and its nested graphs."""
        for node in graph:
            for value in node.outputs if self.forgets_shapes else ():
                value.shape = None
            loop = self._loop(node)
            if isinstance(loop, LoopView):
                self.infer_loop(loop)
            elif isinstance(loop, ScanView) and not loop.batched:
                self._infer_scan_inputs(loop)
                self.infer_graph(loop.body)
                self.set_unknown_shapes(scan_result_shapes(loop, keep_names=self.forgets_shapes))
            elif node_graphs(node):
                for nested in node_graphs(node):
                    self.infer_graph(nested)
                if node.op_type == "If" and node.domain == "":
                    results = zip(*(branch.outputs for branch in node_graphs(node)), strict=False)
                    shapes = [self.merge_branches([value.shape for value in values]) for values in results]
                    (put_shapes if self.forgets_shapes else self.set_unknown_shapes)(dict(zip(node.outputs, shapes, strict=False)))
            else:
                self.infer(node)

    def set_unknown_shapes(self, shapes: Mapping[ir.Value, ir.Shape | None] | Mapping[ir.Value | None, ir.Shape | None]) -> None:
        """Set the shape of each tensor in ``shapes`` that has none yet, and add the tensor to ``inferred``."""
        for value, shape in shapes.items():
            if value is not None and shape is not None and has_unknown_shape(value):
                value.shape = shape
                self.inferred.add(value)

    def _loop(self, node: ir.Node) -> Loop | None:
        try:
            return view(node, self.opset) if is_loop(node) else None
        except MalformedLoop:
            return None  # the rules refuse it later with a message

    def _infer_scan_inputs(self, loop: ScanView) -> None:
        states = {state.inner: state.initial.shape for state in loop.states}
        rows = {scan.inner: without_axis(scan.outer.shape, scan.axis) for scan in loop.scan_inputs}
        if self.use_declared_rows:
            rows = {inner: inner.shape if shape is None else shape for inner, shape in rows.items()}
        (put_shapes if self.forgets_shapes else self.set_unknown_shapes)(states | rows)


def infer_unknown_shapes(graph: ir.Graph, opset: int, infer: Callable[[ir.Node], None], *, proven: bool) -> Set[ir.Value]:
    """Infer the unknown shapes in a graph and in its bodies and branches.

    A dimension that varies between the steps of a Loop gets a name (see ``varies``), which remains in the model. Remove these names
    before the next call, because the next call gives the same names to other dimensions.

    Args:
        graph: The main graph.
        opset: The version of the standard operator set.
        infer: Sets the unknown shapes of a node's outputs.
        proven: True if all known shapes, except the shapes of states, were inferred from operators. If the states of a body keep
            their shapes, the body is then not inferred again.

    Returns:
        The states whose shape is known to change. A state is represented by the input of its body.
    """
    search = _Search(graph, opset, infer, proven)
    search.whole_graph.infer_graph(graph)
    return search.changing


def infer_body(body: ir.Graph, opset: int, infer: Callable[[ir.Node], None]) -> None:
    """Infer all shapes in ``body`` from the shapes of its inputs, and ignore the shapes known so far."""
    _Search(body, opset, infer, proven=True).loop_body.infer_graph(body)


class _Search:
    """Searches a graph for unknown shapes by two walks.

    ``whole_graph`` visits the complete graph. It keeps known shapes and infers unknown ones. ``loop_body`` visits the body of one
    Loop. It infers all shapes from the shapes of the body's inputs.
    """

    def __init__(self, graph: ir.Graph, opset: int, infer: Callable[[ir.Node], None], proven: bool) -> None:
        self.graph, self.infer, self.proven = graph, infer, proven
        self.changing: set[ir.Value] = set()
        self.whole_graph = ShapeWalk(opset, self._infer_if_unknown, self._infer_loop_if_unknown, self._merge, forgets_shapes=False)
        self.loop_body = ShapeWalk(opset, infer, self._infer_loop, self._merge, inferred=self.whole_graph.inferred)
        self._variations = 0

    def _infer_if_unknown(self, node: ir.Node) -> None:
        """Infer ``node`` if an output has an unknown shape that can perhaps be inferred now.

        Before this search, the inference by onnx did not find the shape. It may be found now in three cases: the node is in a body,
        ``infer_contrib`` supports its operator, or this search inferred the shape of one of its inputs.
        """
        better = any(value in self.whole_graph.inferred for value in node.inputs)
        if any(map(has_unknown_shape, node.outputs)) and (node.graph is not self.graph or is_inferred_here(node) or better):
            self.infer(node)
            self.whole_graph.inferred.update(value for value in node.outputs if value.shape is not None)

    def _infer_loop_if_unknown(self, loop: LoopView) -> None:
        """Infer the unknown shapes in the body of ``loop``, and the shapes of its results if one is unknown."""
        self.whole_graph.infer_graph(loop.body)
        if not any(has_unknown_shape(value) for value in loop.node.outputs):
            return
        settled = ([state.initial.shape, state.inner.shape, state.next.shape] for state in loop.states)
        if self.proven and all(same(initial, inner) and same(inner, after) for initial, inner, after in settled):
            self.whole_graph.set_unknown_shapes({state.final: state.initial.shape for state in loop.states})
            self.whole_graph.set_unknown_shapes(
                {output.outer: _stacked(without_names(output.inner.shape)) for output in loop.scan_outputs}
            )
            return
        before = shapes_of([*loop.body.inputs, *inner_values(loop.body)])
        self._infer_loop(loop)
        self.whole_graph.inferred.update(value for value in before if value.shape is not None)
        states = {state.inner for state in loop.states}
        for value, shape in before.items():
            if value not in states or value.shape is None:
                value.shape = refined(value.shape, shape)

    def _infer_loop(self, loop: LoopView) -> None:
        """Infer all shapes in the body of ``loop``, and the shapes of its results.

        Known shapes are ignored, except the shapes of the loop's inputs and of captured values.
        """
        shapes = [state.initial.shape for state in loop.states]
        while True:
            for state, shape in zip(loop.states, shapes, strict=True):
                state.inner.shape = shape
            self.loop_body.infer_graph(loop.body)
            widened = [self._merge([state.inner.shape, state.next.shape]) for state in loop.states]
            self.changing.update(state.inner for state in loop.states if differ(state.inner.shape, state.next.shape))
            if widened == shapes:
                break
            shapes = widened
        self.loop_body.set_unknown_shapes(
            {state.final: self._with_new_varying_names(shape) for state, shape in zip(loop.states, shapes, strict=True)}
        )
        self.loop_body.set_unknown_shapes({output.outer: _stacked(output.inner.shape) for output in loop.scan_outputs})

    def _merge(self, shapes: Sequence[ir.Shape | None]) -> ir.Shape | None:
        """Merge several ``shapes`` of one value: keep each size on which all shapes agree.

        If the shapes have different known sizes along an axis, the size becomes a new name of a varying dimension. If the first of
        the different sizes is already such a name, this name is kept.
        """
        return meet(shapes, self._size_of_unequal)

    def _size_of_unequal(self, dims: Sequence[Dim]) -> str | None:
        first = dims[0]
        if not isinstance(first, int) and varies(first):
            return first.value
        return None if any(map(is_unknown, dims)) else self._new_varying_name()

    def _with_new_varying_names(self, shape: ir.Shape | None) -> ir.Shape | None:
        """Derive the shape of a state's final value from ``shape``, its shape within a step.

        Each varying size gets a new name, because the final size may differ from the size within a step.
        """
        return None if shape is None else ir.Shape([self._new_varying_name() if varies(dim) else dim for dim in shape.dims])

    def _new_varying_name(self) -> str:
        self._variations += 1
        return f"{VARIES}{self._variations}"


def _stacked(shape: ir.Shape | None) -> ir.Shape | None:
    """Return the shape of the Loop result that stacks one value of the given ``shape`` per step."""
    return with_axes(forgotten(shape, varies), 0, None)
