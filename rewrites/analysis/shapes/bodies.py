"""The one walk on which shapes are inferred: node by node, into what a Scan repeats and what an If chooses, and out again.

What a Scan is given has one shape in all steps, and so has what it makes of it; an If gives what its branches have in common. What
becomes of a Loop's states no walk can tell on its way: that is asked of who walks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from rewrites.base.errors import MalformedLoop
from rewrites.graph.dims import meet, with_axes, without_axis, without_names
from rewrites.graph.node_inference import put_shapes
from rewrites.graph.walk import node_graphs
from rewrites.loops import Loop, LoopView, ScanView, is_loop, view

__all__ = ["Walk", "is_open", "out_of_scan"]


def is_open(value: ir.Value) -> bool:
    """Whether ``value`` may be a tensor, of a shape that is not known."""
    return value.shape is None and isinstance(value.type, ir.TensorType | None)


def out_of_scan(loop: ScanView, *, named: bool) -> dict[ir.Value | None, ir.Shape | None]:
    """Return the shapes of what a Scan gives, as its body tells them; ``named``: names of dimensions mean the same outside."""
    found = {state.final: state.initial.shape for state in loop.states}
    for output in loop.scan_outputs:
        shape = output.inner.shape if named else without_names(output.inner.shape)
        rank = 0 if shape is None else len(shape)
        found[output.outer] = with_axes(shape, output.axis % (rank + 1), loop.steps)
    return found


@dataclass
class Walk:
    """A walk over graphs: ``infer`` looks at each node without graphs, ``at_loop`` at each Loop, ``meet`` at what branches give.

    ``afresh``: all shapes are to follow from those of what the graph is given alone, so that a name is one size inside and outside;
    else what is known stays. ``declared_rows``: the row of a stack of which nothing is known has the shape it has. ``found``:
    values whose shapes the walk told.
    """

    opset: int
    infer: Callable[[ir.Node], None]
    at_loop: Callable[[LoopView], None]
    meet: Callable[[Sequence[ir.Shape | None]], ir.Shape | None] = meet
    afresh: bool = True
    declared_rows: bool = False
    found: set[ir.Value] = field(default_factory=set)

    def follow(self, graph: ir.Graph) -> None:
        """Infer the shapes in ``graph`` and in those inside."""
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
                    given = zip(*(branch.outputs for branch in node_graphs(node)), strict=False)
                    shapes = [self.meet([value.shape for value in values]) for values in given]
                    (put_shapes if self.afresh else self.tell)(dict(zip(node.outputs, shapes, strict=False)))
            else:
                self.infer(node)

    def tell(self, shapes: Mapping[ir.Value, ir.Shape | None] | Mapping[ir.Value | None, ir.Shape | None]) -> None:
        """Give tensors the shapes that were found for them, where none is known."""
        for value, shape in shapes.items():
            if value is not None and shape is not None and is_open(value):
                value.shape = shape
                self.found.add(value)

    def _loop(self, node: ir.Node) -> Loop | None:
        try:
            return view(node, self.opset) if is_loop(node) else None
        except MalformedLoop:
            return None  # refused with a word to the user when the rules come to it

    def _into_scan(self, loop: ScanView) -> None:
        states = {state.inner: state.initial.shape for state in loop.states}
        rows = {scan.inner: without_axis(scan.outer.shape, scan.axis) for scan in loop.scan_inputs}
        if self.declared_rows:
            rows = {inner: inner.shape if shape is None else shape for inner, shape in rows.items()}
        (put_shapes if self.afresh else self.tell)(states | rows)
