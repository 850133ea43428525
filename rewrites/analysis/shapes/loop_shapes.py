"""The shapes that onnx's inference leaves open: what a Loop gives, what follows of it, and what captured constants tell.

onnx knows no shape of a Loop's state, since any step may change it. From the shapes of the initial values, the body's operators
tell what a step gives; where that is the same again, induction gives it for all steps. A size that a step may change gets a name
that says so (``varies``), and the body is looked at again, until nothing changes any more. What a model declares of a state proves
nothing here.

Works round ONNX-CAPTURED-CONSTANTS.
"""

from collections.abc import Callable, Sequence, Set

import onnx_ir as ir

from rewrites.analysis.shapes.bodies import Walk, is_open
from rewrites.graph.dims import VARIES, Dim, differ, forgotten, is_unknown, meet, refined, same, varies, with_axes, without_names
from rewrites.graph.node_inference import is_told_here, shapes_of
from rewrites.graph.walk import inner_values
from rewrites.loops import LoopView

__all__ = ["find_open_shapes", "infer_body"]


def find_open_shapes(graph: ir.Graph, opset: int, infer: Callable[[ir.Node], None], *, proven: bool) -> Set[ir.Value]:
    """Find shapes that are not known yet, bodies included; return the body inputs of the states that some step surely changes.

    ``infer`` sets the shapes of a node's outputs that have none, where the operator tells them. ``proven``: all shapes known so far
    come from operators, but for those of states, so that a body need not be looked at again. Dimensions are left behind of which
    ``varies`` holds; another search would give their names to others.
    """
    search = _Search(graph, opset, infer, proven)
    search.again.follow(graph)
    return search.changing


def infer_body(body: ir.Graph, opset: int, infer: Callable[[ir.Node], None]) -> None:
    """Set all shapes in ``body`` to what its operators make of those of its inputs, alone."""
    _Search(body, opset, infer, proven=True).afresh.follow(body)


class _Search:
    """Two walks: ``again`` looks for what is open, and ``afresh`` finds all shapes in the body of a Loop from what it is given."""

    def __init__(self, graph: ir.Graph, opset: int, infer: Callable[[ir.Node], None], proven: bool) -> None:
        self.graph, self.infer, self.proven = graph, infer, proven
        self.changing: set[ir.Value] = set()
        self.again = Walk(opset, self._infer_open, self._look_at_loop, self._meet, afresh=False)
        self.afresh = Walk(opset, infer, self._infer_loop, self._meet, found=self.again.found)
        self._variations = 0

    def _infer_open(self, node: ir.Node) -> None:
        """Infer a node whose inputs are better known now, and in bodies all that are open."""
        better = any(value in self.again.found for value in node.inputs)
        if any(map(is_open, node.outputs)) and (node.graph is not self.graph or is_told_here(node) or better):
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
        """Find all shapes in the body, and those of the results, from what is known outside alone."""
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
        self.afresh.tell({state.final: self._anew(shape) for state, shape in zip(loop.states, shapes, strict=True)})
        self.afresh.tell({output.outer: _stacked(output.inner.shape) for output in loop.scan_outputs})

    def _meet(self, shapes: Sequence[ir.Shape | None]) -> ir.Shape | None:
        """Return what is known of a value that has one of ``shapes``; what varies in the first stays."""
        return meet(shapes, self._variation_of)

    def _variation_of(self, dims: Sequence[Dim]) -> str | None:
        first = dims[0]
        if not isinstance(first, int) and varies(first):
            return first.value
        return None if any(map(is_unknown, dims)) else self._variation()

    def _anew(self, shape: ir.Shape | None) -> ir.Shape | None:
        """Name what varies anew, since it is another size than within the loop."""
        return None if shape is None else ir.Shape([self._variation() if varies(dim) else dim for dim in shape.dims])

    def _variation(self) -> str:
        self._variations += 1
        return f"{VARIES}{self._variations}"


def _stacked(shape: ir.Shape | None) -> ir.Shape | None:
    """Return the shape of what a Loop stacks of values of ``shape``."""
    return with_axes(forgotten(shape, varies), 0, None)
