"""The sizes of what a Loop stacks, where it makes no step: those that onnxruntime knows of one step's result, 0 for all others.

It merges what a body declares of a result with what the operators tell from the declared states, and where the two contradict each
other it keeps what they have in common; a size of 0 stands for a contradiction here, whatever is found out later. Rules forget what
is declared wrongly, and what nobody reads any more, so that is noted before the first, and written down again after the last.

Works round ORT-LOOP-NO-STEPS-SIZES.
"""

from collections.abc import Iterator, Mapping

import onnx_ir as ir

from rewrites.base.errors import MalformedLoop
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
            merged = [_merged(_sizes(declared[output.inner]), _sizes(output.inner.shape)) for output in loop.scan_outputs]
            EMPTY_SIZES.put(loop.node, merged)


def known_sizes(output: ScanOutput) -> Sizes | None:
    """Return the sizes that one step's result has for onnxruntime where none is made, None for those it does not know."""
    found, noted = _sizes(output.inner.shape), output.empty
    if found is None or noted is None or len(found) != len(noted):
        return noted if found is None else found
    return tuple(own if size is None else size for size, own in zip(noted, found, strict=True))


def declare_sizes_without_steps(graph: ir.Graph, names: Names) -> None:
    """Let the bodies of the Loops that are left declare what was noted, where no operator tells it any more."""
    for loop in _loops(graph):
        for i, output in enumerate(loop.scan_outputs, start=1 + len(loop.states)):
            found, known = _sizes(output.inner.shape), known_sizes(output)
            if known is None or known == found or _contradict(known, found):
                continue
            value, shape = output.inner, output.inner.shape
            if value.uses() or value.producer() is None or loop.body.outputs.count(value) > 1:
                copy = ir.Value(name=names.fresh(f"{value.name}_out"), type=value.type)
                loop.body.append(ir.Node("", "Identity", [value], outputs=[copy], name=names.fresh(f"{value.name}/Identity")))
                loop.body.outputs[i] = value = copy
            dims = [None] * len(known) if shape is None else shape.dims
            value.shape = ir.Shape([dim if size is None else size for size, dim in zip(known, dims, strict=True)])


def _loops(graph: ir.Graph) -> Iterator[LoopView]:
    for node in all_nodes(graph):
        if is_loop(node) and node.op_type == "Loop":
            try:
                yield LoopView.of(node, 1)
            except MalformedLoop:
                continue  # refused with a word to the user when the rules come to it


def _merged(declared: Sizes | None, found: Sizes | None) -> Sizes | None:
    if declared is None or found is None:
        return found if declared is None else declared
    if len(declared) != len(found):
        return None
    pairs = list(zip(declared, found, strict=True))
    if _contradict(declared, found):
        return tuple(one if one == other else None if None in (one, other) else 0 for one, other in pairs)
    return tuple(other if one is None else one for one, other in pairs)


def _contradict(one: Sizes, other: Sizes | None) -> bool:
    return other is not None and any(None not in pair and pair[0] != pair[1] for pair in zip(one, other, strict=True))


def _sizes(shape: ir.Shape | None) -> Sizes | None:
    return None if shape is None else tuple(dim if isinstance(dim, int) else None for dim in shape.dims)
