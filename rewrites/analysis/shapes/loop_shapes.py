"""The shapes that onnx's inference leaves open: what a Loop gives, what follows of it, and what captured constants tell.

onnx knows no shape of a Loop's state, since any step may change it. From the shapes of the initial values, the body's operators
tell what a step gives; where that is the same again, induction gives it for all steps. A size that a step may change gets a name
that says so (``varies``), and the body is looked at again, until nothing changes any more. What a model declares of a state proves
nothing here.

Works round ONNX-CAPTURED-CONSTANTS.
"""

from collections.abc import Callable, Iterable, Sequence, Set

import onnx_ir as ir

from rewrites.analysis.shapes.dims import (
    VARIES,
    Dim,
    differ,
    dims_of,
    equal,
    into_scan,
    is_open,
    is_unknown,
    out_of_scan,
    refined,
    same,
    stacked,
    varies,
    without_names,
)
from rewrites.base.errors import MalformedLoop
from rewrites.graph.contrib_shapes import is_like_first
from rewrites.graph.walk import all_nodes, inner_graphs, node_graphs
from rewrites.loops import Loop, LoopView, ScanView, is_loop, view

__all__ = ["find_open_shapes", "infer_body"]

_Shapes = dict[ir.Value, ir.Shape | None]


def find_open_shapes(graph: ir.Graph, opset: int, infer: Callable[[ir.Node], None], *, proven: bool) -> Set[ir.Value]:
    """Find shapes that are not known yet, bodies included; return the body inputs of the states that some step surely changes.

    ``infer`` sets the shapes of a node's outputs that have none, where the operator tells them. ``proven``: all shapes known so far
    come from operators, but for those of states, so that a body need not be looked at again. Dimensions are left behind of which
    ``varies`` holds; ``forget_variations`` takes them away.
    """
    search = _Search(opset, infer, proven)
    search.look_again(graph, inside=False)
    return search.changing


def infer_body(body: ir.Graph, opset: int, infer: Callable[[ir.Node], None]) -> None:
    """Set all shapes in ``body`` to what its operators make of those of its inputs, alone."""
    _Search(opset, infer, proven=True).infer_graph(body)


class _Search:
    """One walk over a model; ``news`` are the values whose shapes it has found."""

    def __init__(self, opset: int, infer: Callable[[ir.Node], None], proven: bool) -> None:
        self.opset, self.infer, self.proven = opset, infer, proven
        self.news: set[ir.Value] = set()
        self.changing: set[ir.Value] = set()
        self._variations = 0

    def look_again(self, graph: ir.Graph, *, inside: bool) -> None:
        """Visit the nodes whose inputs are better known now, all Loops, and in bodies (``inside``) all that is open."""
        for node in graph:
            loop = self._loop(node)
            if isinstance(loop, LoopView):
                self._look_at_loop(loop)
            elif isinstance(loop, ScanView) and not loop.batched:
                self._look_at_scan(loop)
            elif node_graphs(node):
                for nested in node_graphs(node):
                    self.look_again(nested, inside=True)
                self._tell(self._results_of_branches(node))
            elif any(map(is_open, node.outputs)) and (
                inside or is_like_first(node) or any(value in self.news for value in node.inputs)
            ):
                self.infer(node)
                self.news.update(value for value in node.outputs if value.shape is not None)

    def _tell(self, found: Iterable[tuple[ir.Value | None, ir.Shape | None]]) -> None:
        for value, shape in found:
            if value is not None and shape is not None and is_open(value):
                value.shape = shape
                self.news.add(value)

    def _loop(self, node: ir.Node) -> Loop | None:
        try:
            return view(node, self.opset) if is_loop(node) else None
        except MalformedLoop:
            return None  # refused with a word to the user when the rules come to it

    def _look_at_scan(self, loop: ScanView) -> None:
        self._tell(into_scan(loop))
        self.look_again(loop.body, inside=True)
        self._tell((state.final, state.initial.shape) for state in loop.states)
        self._tell(out_of_scan(loop, named=False))

    def _look_at_loop(self, loop: LoopView) -> None:
        self.look_again(loop.body, inside=True)
        if not any(is_open(value) for value in loop.node.outputs):
            return
        if self.proven and all(same(state.initial, state.inner) and same(state.inner, state.next) for state in loop.states):
            self._tell((state.final, state.initial.shape) for state in loop.states)
            results = ((output.outer, output.inner.shape) for output in loop.scan_outputs)
            self._tell((outer, None if shape is None else stacked(without_names(shape))) for outer, shape in results)
            return
        values = [value for node in all_nodes(loop.body) for value in node.outputs]
        inputs = [value for graph in (loop.body, *inner_graphs(loop.body)) for value in graph.inputs]
        before: _Shapes = {value: value.shape for value in [*inputs, *values]}
        self._infer_loop(loop)
        self.news.update(value for value in before if value.shape is not None)
        states = {state.inner for state in loop.states}
        for value, shape in before.items():
            if value not in states or value.shape is None:
                value.shape = refined(value.shape, shape)

    def _infer_loop(self, loop: LoopView) -> None:
        """Find all shapes in the body, and those of the results, from what is known outside alone."""
        shapes = [state.initial.shape for state in loop.states]
        while True:
            for state, shape in zip(loop.states, shapes, strict=True):
                state.inner.shape = shape
            self.infer_graph(loop.body)
            widened = [self._common([state.inner.shape, state.next.shape]) for state in loop.states]
            self.changing.update(state.inner for state in loop.states if differ(state.inner.shape, state.next.shape))
            if all(dims_of(new) == dims_of(shape) for new, shape in zip(widened, shapes, strict=True)):
                break
            shapes = widened
        self._tell((state.final, self._anew(shape)) for state, shape in zip(loop.states, shapes, strict=True))
        self._tell((output.outer, stacked(output.inner.shape)) for output in loop.scan_outputs)

    def infer_graph(self, graph: ir.Graph) -> None:
        """Find all shapes in ``graph`` from those of its inputs alone."""
        for node in graph:
            for value in node.outputs:
                value.shape = None
            loop = self._loop(node)
            if isinstance(loop, LoopView):
                self._infer_loop(loop)
            elif isinstance(loop, ScanView) and not loop.batched:
                for inner, shape in into_scan(loop):
                    inner.shape = shape
                self.infer_graph(loop.body)
                self._tell((state.final, state.initial.shape) for state in loop.states)
                self._tell(out_of_scan(loop, named=True))
            elif node_graphs(node):
                for nested in node_graphs(node):
                    self.infer_graph(nested)
                self._tell(self._results_of_branches(node))
            else:
                self.infer(node)

    def _results_of_branches(self, node: ir.Node) -> list[tuple[ir.Value, ir.Shape | None]]:
        if node.op_type != "If" or node.domain != "":
            return []
        branches = zip(*(graph.outputs for graph in node_graphs(node)), strict=False)
        results = zip(node.outputs, branches, strict=False)
        return [(value, self._common([one.shape for one in given])) for value, given in results]

    def _common(self, shapes: Sequence[ir.Shape | None]) -> ir.Shape | None:
        """Return what is known of a value that has one of ``shapes``; what varies in the first stays."""
        known = [shape for shape in shapes if shape is not None]
        if not known or len(known) < len(shapes) or len({len(shape) for shape in known}) != 1:
            return None
        return ir.Shape([self._common_dim(dims) for dims in zip(*(shape.dims for shape in known), strict=True)])

    def _common_dim(self, dims: Sequence[Dim]) -> int | str | None:
        first = dims[0]
        if varies(first) or all(equal(first, dim) for dim in dims):
            return first if isinstance(first, int) else first.value
        return None if any(map(is_unknown, dims)) else self._variation()

    def _anew(self, shape: ir.Shape | None) -> ir.Shape | None:
        """Name what varies anew, since it is another size than within the loop."""
        return None if shape is None else ir.Shape([self._variation() if varies(dim) else dim for dim in shape.dims])

    def _variation(self) -> str:
        self._variations += 1
        return f"{VARIES}{self._variations}"
