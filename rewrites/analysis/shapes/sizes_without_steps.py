"""Preserves the sizes of a Loop's stacked results for the case that the Loop runs no step.

If no step runs, onnxruntime returns an empty stack. Its axes after the first have the sizes that onnxruntime knows of one step's
result. A size that onnxruntime does not know becomes 0. Rules may remove the declarations and nodes from which these sizes follow.
Therefore the sizes are recorded before the first rule. After the last rule, they are declared if they no longer follow from
operators.

onnxruntime merges the declared shape of a result with its inferred shape. If the two contradict each other on a size, onnxruntime
does not know this size, so this module records 0.

Works around ORT-LOOP-NO-STEPS-SIZES.
"""

from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from rewrites.base.errors import MalformedLoop
from rewrites.graph.dims import Dim, differ, meet, refined, without_names
from rewrites.graph.marks import EMPTY_SIZES
from rewrites.graph.names import Names
from rewrites.graph.walk import all_nodes
from rewrites.loops import LoopView, ScanOutput, is_loop
from rewrites.loops.own_results import append_copy

__all__ = ["declare_sizes_without_steps", "declared_results", "known_sizes", "note_sizes_without_steps"]

Sizes = tuple[int | None, ...]


def declared_results(graph: ir.Graph) -> dict[ir.Value, ir.Shape | None]:
    """Return the declared shapes of the stacked results of all Loops whose sizes are not recorded yet.

    The keys are the values in the bodies that are stacked.
    """
    loops = (loop for loop in _loops(graph) if not EMPTY_SIZES.on(loop.node))
    return {output.inner: output.inner.shape for loop in loops for output in loop.scan_outputs}


def note_sizes_without_steps(graph: ir.Graph, declared: Mapping[ir.Value, ir.Shape | None]) -> None:
    """Record the sizes that onnxruntime knows of the stacked results of each Loop.

    They follow from the ``declared`` and the inferred shapes. Loops with recorded sizes are skipped.
    """
    for loop in _loops(graph):
        if not EMPTY_SIZES.on(loop.node) and all(output.inner in declared for output in loop.scan_outputs):
            merged = [_merged(without_names(declared[output.inner]), output.inner.shape) for output in loop.scan_outputs]
            EMPTY_SIZES.put(loop.node, list(map(_sizes, merged)))


def known_sizes(output: ScanOutput) -> Sizes | None:
    """Return the sizes of one step's result that onnxruntime knows, or that are recorded.

    Unknown sizes are None.
    """
    own_sizes, noted = _sizes(output.inner.shape), output.empty
    if own_sizes is None or noted is None or len(own_sizes) != len(noted):
        return noted if own_sizes is None else own_sizes
    return tuple(own if size is None else size for size, own in zip(noted, own_sizes, strict=True))


def declare_sizes_without_steps(graph: ir.Graph, names: Names) -> None:
    """Declare the recorded sizes that no longer follow from operators, in the bodies of all Loops."""
    for loop in _loops(graph):
        for i, output in enumerate(loop.scan_outputs, start=1 + len(loop.states)):
            known, value, shape = known_sizes(output), output.inner, output.inner.shape
            if known is None or known == _sizes(shape) or differ(ir.Shape(known), shape):
                continue
            if value.uses() or value.producer() is None or loop.body.outputs.count(value) > 1:
                loop.body.outputs[i] = value = append_copy(loop.body, value, names)
            value.shape = refined(ir.Shape(known), shape)


def _loops(graph: ir.Graph) -> Iterator[LoopView]:
    for node in all_nodes(graph):
        if is_loop(node) and node.op_type == "Loop":
            try:
                yield LoopView.of(node, 1)
            except MalformedLoop:
                continue  # the rules refuse it later with a message


def _merged(declared: ir.Shape | None, inferred: ir.Shape | None) -> ir.Shape | None:
    return meet([declared, inferred], _contradiction) if differ(declared, inferred) else refined(declared, inferred)


def _contradiction(dims: Sequence[Dim]) -> int | None:
    return 0 if all(isinstance(dim, int) for dim in dims) else None


def _sizes(shape: ir.Shape | None) -> Sizes | None:
    return None if shape is None else tuple(dim if isinstance(dim, int) else None for dim in shape.dims)
