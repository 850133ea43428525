"""The sizes of what a Loop stacks, where it makes no step: those that onnxruntime knows of one step's result, 0 for all others.

It merges what a body declares of a result with what the operators tell from the declared states, and where the two contradict each
other it keeps what they have in common; a size of 0 stands for a contradiction here, whatever is found out later. Rules forget what
is declared wrongly, and what nobody reads any more, so that is noted before the first, and written down again after the last.

Works round ORT-LOOP-NO-STEPS-SIZES.
"""

from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from rewrites.base.errors import MalformedLoop
from rewrites.graph.dims import Dim, differ, meet, refined, without_names
from rewrites.graph.marks import EMPTY_SIZES
from rewrites.graph.names import Names
from rewrites.graph.walk import all_nodes
from rewrites.loops import LoopView, ScanOutput, is_loop

__all__ = ["declare_sizes_without_steps", "declared_results", "known_sizes", "note_sizes_without_steps"]

Sizes = tuple[int | None, ...]


def declared_results(graph: ir.Graph) -> dict[ir.Value, ir.Shape | None]:
    """Return what the bodies of Loops that were not looked at yet declare of what is stacked."""
    loops = (loop for loop in _loops(graph) if not EMPTY_SIZES.on(loop.node))
    return {output.inner: output.inner.shape for loop in loops for output in loop.scan_outputs}


def note_sizes_without_steps(graph: ir.Graph, declared: Mapping[ir.Value, ir.Shape | None]) -> None:
    """Note what onnxruntime knows of results with these declared shapes. Their shapes are what the operators tell."""
    for loop in _loops(graph):
        if not EMPTY_SIZES.on(loop.node) and all(output.inner in declared for output in loop.scan_outputs):
            merged = [_merged(without_names(declared[output.inner]), output.inner.shape) for output in loop.scan_outputs]
            EMPTY_SIZES.put(loop.node, list(map(_sizes, merged)))


def known_sizes(output: ScanOutput) -> Sizes | None:
    """Return the sizes that one step's result has for onnxruntime where none is made, None for those it does not know."""
    own_sizes, noted = _sizes(output.inner.shape), output.empty
    if own_sizes is None or noted is None or len(own_sizes) != len(noted):
        return noted if own_sizes is None else own_sizes
    return tuple(own if size is None else size for size, own in zip(noted, own_sizes, strict=True))


def declare_sizes_without_steps(graph: ir.Graph, names: Names) -> None:
    """Let the bodies of the Loops that are left declare what was noted, where no operator tells it any more."""
    for loop in _loops(graph):
        for i, output in enumerate(loop.scan_outputs, start=1 + len(loop.states)):
            known, value, shape = known_sizes(output), output.inner, output.inner.shape
            if known is None or known == _sizes(shape) or differ(ir.Shape(known), shape):
                continue
            if value.uses() or value.producer() is None or loop.body.outputs.count(value) > 1:
                copy = ir.Value(name=names.fresh(f"{value.name}_out"), type=value.type)
                loop.body.append(ir.Node("", "Identity", [value], outputs=[copy], name=names.fresh(f"{value.name}/Identity")))
                loop.body.outputs[i] = value = copy
            value.shape = refined(ir.Shape(known), shape)


def _loops(graph: ir.Graph) -> Iterator[LoopView]:
    for node in all_nodes(graph):
        if is_loop(node) and node.op_type == "Loop":
            try:
                yield LoopView.of(node, 1)
            except MalformedLoop:
                continue  # refused with a word to the user when the rules come to it


def _merged(declared: ir.Shape | None, inferred: ir.Shape | None) -> ir.Shape | None:
    return meet([declared, inferred], _contradiction) if differ(declared, inferred) else refined(declared, inferred)


def _contradiction(dims: Sequence[Dim]) -> int | None:
    return 0 if all(isinstance(dim, int) for dim in dims) else None


def _sizes(shape: ir.Shape | None) -> Sizes | None:
    return None if shape is None else tuple(dim if isinstance(dim, int) else None for dim in shape.dims)
