"""Preserves the sizes of a Loop's stacked results for the case that the Loop runs zero steps.

If no step runs, onnxruntime returns an empty stack: axis 0 has size 0. Each other axis has the size that it has in one step's
result, if onnxruntime knows this size, and size 0 if not. onnxruntime derives these sizes from declarations and nodes, which rules
may remove. Therefore the sizes are recorded before the first rule. After the last rule, those sizes are declared that shape
inference can no longer derive.

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
    """Return the declared shapes of the values that Loops stack, by value.

    If the sizes of a Loop are already recorded, its values are left out.
    """
    loops = (loop for loop in _loops(graph) if not EMPTY_SIZES.on(loop.node))
    return {output.inner: output.inner.shape for loop in loops for output in loop.scan_outputs}


def note_sizes_without_steps(graph: ir.Graph, declared: Mapping[ir.Value, ir.Shape | None]) -> None:
    """Record, for each Loop, the sizes of its stacked results that onnxruntime knows.

    The sizes come from two shapes of each stacked value: its shape in ``declared``, and its present (inferred) shape. If the sizes
    of a Loop are already recorded, the Loop is skipped.
    """
    for loop in _loops(graph):
        if not EMPTY_SIZES.on(loop.node) and all(output.inner in declared for output in loop.scan_outputs):
            merged = [_merged(without_names(declared[output.inner]), output.inner.shape) for output in loop.scan_outputs]
            EMPTY_SIZES.put(loop.node, list(map(_sizes, merged)))


def known_sizes(output: ScanOutput) -> Sizes | None:
    """Return the sizes of ``output`` in one step; None for an unknown size.

    Each size is the recorded size. If this is unknown, it is the size in the present shape of the value. Return None if neither the
    recorded sizes nor the shape are known.
    """
    own_sizes, noted = _sizes(output.inner.shape), output.empty_sizes
    if own_sizes is None or noted is None or len(own_sizes) != len(noted):
        return noted if own_sizes is None else own_sizes
    return tuple(own if size is None else size for size, own in zip(noted, own_sizes, strict=True))


def declare_sizes_without_steps(graph: ir.Graph, names: Names) -> None:
    """Declare the recorded sizes of stacked results if shape inference can no longer derive them.

    The declarations are put on the body outputs of all Loops in ``graph``.
    """
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
