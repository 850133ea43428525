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

__all__ = ["Walk", "find_open_shapes", "infer_body", "is_open", "out_of_scan"]


def is_open(value: ir.Value) -> bool:
    """Return True if the shape of ``value`` is unknown and ``value`` may be a tensor."""
    return value.shape is None and isinstance(value.type, ir.TensorType | None)


def out_of_scan(loop: ScanView, *, named: bool) -> dict[ir.Value | None, ir.Shape | None]:
    """Return the shapes of the results of a Scan, derived from its body.

    ``named``: True to keep the names that dimensions have in the body. Otherwise, these dimensions become unknown.
    """
    shapes = {state.final: state.initial.shape for state in loop.states}
    for output in loop.scan_outputs:
        shape = output.inner.shape if named else without_names(output.inner.shape)
        rank = 0 if shape is None else len(shape)
        shapes[output.outer] = with_axes(shape, output.axis % (rank + 1), loop.steps)
    return shapes


@dataclass
class Walk:
    """Infers shapes in a graph and its nested graphs, in topological order.

    Args:
        opset: The version of the standard operator set.
        infer: Infers the results of a node without nested graphs.
        at_loop: Infers the results of a Loop.
        meet: Merges the shapes that the branches of an If return for one result.
        afresh: True to forget all known shapes and infer them from the shapes of the graph's inputs. A dimension with the same name
            inside and outside of a body then has the same size. False to keep known shapes.
        declared_rows: True to use the declared shapes of rows in the body of a Scan, for scanned tensors of unknown shape.
        found: The values whose shapes were inferred.
    """

    opset: int
    infer: Callable[[ir.Node], None]
    at_loop: Callable[[LoopView], None]
    meet: Callable[[Sequence[ir.Shape | None]], ir.Shape | None] = meet
    afresh: bool = True
    declared_rows: bool = False
    found: set[ir.Value] = field(default_factory=set)

    def follow(self, graph: ir.Graph) -> None:
        """Infer the shapes in ``graph`` and its nested graphs."""
        for node in graph:
            for value in node.outputs if self.afresh else ():
                value.shape = None
            loop = self._loop(node)
            if isinstance(loop, LoopView):
                self.at_loop(loop)
            elif isinstance(loop, ScanView) and not loop.batched:
                self._into_scan(loop)
                self.follow(loop.body)
                self.tell(out_of_scan(loop, named=self.afresh))
            elif node_graphs(node):
                for nested in node_graphs(node):
                    self.follow(nested)
                if node.op_type == "If" and node.domain == "":
                    results = zip(*(branch.outputs for branch in node_graphs(node)), strict=False)
                    shapes = [self.meet([value.shape for value in values]) for values in results]
                    (put_shapes if self.afresh else self.tell)(dict(zip(node.outputs, shapes, strict=False)))
            else:
                self.infer(node)

    def tell(self, shapes: Mapping[ir.Value, ir.Shape | None] | Mapping[ir.Value | None, ir.Shape | None]) -> None:
        """Set the shape of each tensor in ``shapes`` that has none yet, and add the tensor to ``found``."""
        for value, shape in shapes.items():
            if value is not None and shape is not None and is_open(value):
                value.shape = shape
                self.found.add(value)

    def _loop(self, node: ir.Node) -> Loop | None:
        try:
            return view(node, self.opset) if is_loop(node) else None
        except MalformedLoop:
            return None  # the rules refuse it later with a message

    def _into_scan(self, loop: ScanView) -> None:
        states = {state.inner: state.initial.shape for state in loop.states}
        rows = {scan.inner: without_axis(scan.outer.shape, scan.axis) for scan in loop.scan_inputs}
        if self.declared_rows:
            rows = {inner: inner.shape if shape is None else shape for inner, shape in rows.items()}
        (put_shapes if self.afresh else self.tell)(states | rows)


def find_open_shapes(graph: ir.Graph, opset: int, infer: Callable[[ir.Node], None], *, proven: bool) -> Set[ir.Value]:
    """Infer the unknown shapes in a graph and in its bodies and branches.

    A dimension that varies between the steps of a Loop gets a name (see ``varies``), which remains in the model. Remove these names
    before the next call, because it gives the same names to other dimensions.

    Args:
        graph: The main graph.
        opset: The version of the standard operator set.
        infer: Sets the unknown shapes of a node's outputs.
        proven: True if all known shapes, except those of states, were inferred from operators. A body whose states keep their
            shapes is then not inferred again.

    Returns:
        The states whose shape is known to change, as inputs of their bodies.
    """
    search = _Search(graph, opset, infer, proven)
    search.again.follow(graph)
    return search.changing


def infer_body(body: ir.Graph, opset: int, infer: Callable[[ir.Node], None]) -> None:
    """Infer all shapes in ``body`` from the shapes of its inputs, and ignore the shapes known so far."""
    _Search(body, opset, infer, proven=True).afresh.follow(body)


class _Search:
    """Searches a graph for unknown shapes by two walks.

    ``again`` visits the complete graph. It keeps known shapes and infers unknown ones. ``afresh`` visits the body of one Loop. It
    infers all shapes from the shapes of the body's inputs.
    """

    def __init__(self, graph: ir.Graph, opset: int, infer: Callable[[ir.Node], None], proven: bool) -> None:
        self.graph, self.infer, self.proven = graph, infer, proven
        self.changing: set[ir.Value] = set()
        self.again = Walk(opset, self._infer_open, self._look_at_loop, self._meet, afresh=False)
        self.afresh = Walk(opset, infer, self._infer_loop, self._meet, found=self.again.found)
        self._variations = 0

    def _infer_open(self, node: ir.Node) -> None:
        """Infer a node if the shape of an output is unknown and inference may succeed where it failed before.

        It may succeed in three cases: the node is in a body, ``infer_contrib`` supports its operator, or this search inferred the
        shape of one of its inputs.
        """
        better = any(value in self.again.found for value in node.inputs)
        if any(map(is_open, node.outputs)) and (node.graph is not self.graph or is_inferred_here(node) or better):
            self.infer(node)
            self.again.found.update(value for value in node.outputs if value.shape is not None)

    def _look_at_loop(self, loop: LoopView) -> None:
        self.again.follow(loop.body)
        if not any(is_open(value) for value in loop.node.outputs):
            return
        settled = ([state.initial.shape, state.inner.shape, state.next.shape] for state in loop.states)
        if self.proven and all(same(initial, inner) and same(inner, after) for initial, inner, after in settled):
            self.again.tell({state.final: state.initial.shape for state in loop.states})
            self.again.tell({output.outer: _stacked(without_names(output.inner.shape)) for output in loop.scan_outputs})
            return
        before = shapes_of([*loop.body.inputs, *inner_values(loop.body)])
        self._infer_loop(loop)
        self.again.found.update(value for value in before if value.shape is not None)
        states = {state.inner for state in loop.states}
        for value, shape in before.items():
            if value not in states or value.shape is None:
                value.shape = refined(value.shape, shape)

    def _infer_loop(self, loop: LoopView) -> None:
        """Infer all shapes in the body of ``loop`` and of its results, ignoring the shapes known so far.

        Only the shapes of the loop's inputs and of captured values are used.
        """
        shapes = [state.initial.shape for state in loop.states]
        while True:
            for state, shape in zip(loop.states, shapes, strict=True):
                state.inner.shape = shape
            self.afresh.follow(loop.body)
            widened = [self._meet([state.inner.shape, state.next.shape]) for state in loop.states]
            self.changing.update(state.inner for state in loop.states if differ(state.inner.shape, state.next.shape))
            if widened == shapes:
                break
            shapes = widened
        self.afresh.tell({state.final: self._renamed(shape) for state, shape in zip(loop.states, shapes, strict=True)})
        self.afresh.tell({output.outer: _stacked(output.inner.shape) for output in loop.scan_outputs})

    def _meet(self, shapes: Sequence[ir.Shape | None]) -> ir.Shape | None:
        """Merge several ``shapes`` of one value, and keep the sizes on which all shapes agree.

        If the shapes have different known sizes along an axis, the size becomes a new name of a varying dimension. If the first of
        these sizes is already such a name, the name is kept.
        """
        return meet(shapes, self._variation_of)

    def _variation_of(self, dims: Sequence[Dim]) -> str | None:
        first = dims[0]
        if not isinstance(first, int) and varies(first):
            return first.value
        return None if any(map(is_unknown, dims)) else self._variation()

    def _renamed(self, shape: ir.Shape | None) -> ir.Shape | None:
        """Return the shape of a state's final value, if ``shape`` is the shape of the state within a step.

        Sizes that vary between steps get new names, because the final sizes may differ from those within a step.
        """
        return None if shape is None else ir.Shape([self._variation() if varies(dim) else dim for dim in shape.dims])

    def _variation(self) -> str:
        self._variations += 1
        return f"{VARIES}{self._variations}"


def _stacked(shape: ir.Shape | None) -> ir.Shape | None:
    """Return the shape of a Loop's result that stacks one value of the given ``shape`` per step."""
    return with_axes(forgotten(shape, varies), 0, None)
