"""What a Loop gives that has no step at all, beside what it gives otherwise.

    If (T > 0) then the Scan else the initial states and empty results

The empty results have the shapes onnxruntime gives them: the sizes it knows of one step's result, 0 for all others.

Works round ORT-LOOP-NO-STEPS-SIZES.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.emission import exceeds
from rewrites.analysis.shapes.sizes_without_steps import known_sizes
from rewrites.graph.branches import SOME_STEPS, of_a_size_not_inferred, say_has_steps
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.loops import LoopView

__all__ = ["guarded", "zero_step_shapes"]


def zero_step_shapes(loop: LoopView) -> list[tuple[int, ...]]:
    """Return the shapes of the stacked results without a step."""
    return [(0, *(size or 0 for size in known_sizes(output) or ())) for output in loop.scan_outputs]


def guarded(
    ctx: Context, loop: LoopView, scan: ir.Node, build: Builder, steps: ir.Value, empty: Sequence[tuple[int, ...]]
) -> tuple[ir.Node, list[tuple[ir.Value, ir.Value]]]:
    """Make a detached If around ``scan`` (and the nodes of ``build``); return it and its results beside those of the loop.

    ``steps``: the trip count. ``empty``: the shapes of the stacked results where there is no step.
    """
    names = ctx.names
    used = [i for i, value in enumerate(loop.node.outputs) if value.uses() or value.is_graph_output()]
    used = used or [0]
    then = ir.Graph([], [scan.outputs[i] for i in used], nodes=[scan], name=names.fresh(SOME_STEPS))
    say_has_steps(then)
    build.insert_before(scan)
    given: list[ir.Value] = [state.initial for state in loop.states]
    for output, shape in zip(loop.scan_outputs, empty, strict=True):
        dtype = output.inner.dtype or ir.DataType.FLOAT
        given.append(ctx.constants.value(np.zeros(shape, object if dtype == ir.DataType.STRING else dtype.numpy()), "nothing"))
    before, nothing = ctx.builder(), ctx.builder()
    some = exceeds(before, steps, before.const(np.array(0, np.int64)))
    before.insert_before(loop.node)
    copies = []
    for i in used:
        value = given[i] if i < len(loop.states) else of_a_size_not_inferred(nothing, given[i], some)
        copy = ir.Value(name=names.fresh(f"{value.name}_out"), type=value.type, shape=value.shape)
        nothing.nodes.append(ir.Node("", "Identity", [value], outputs=[copy], name=names.fresh("node_Identity")))
        copies.append(copy)
    otherwise = ir.Graph([], copies, nodes=nothing.nodes, name=names.fresh("no_steps"))
    outputs = [ir.Value(name=names.fresh(f"{scan.outputs[i].name}_or_none"), type=scan.outputs[i].type) for i in used]
    attributes = [ir.AttrGraph("then_branch", then), ir.AttrGraph("else_branch", otherwise)]
    node = ir.Node("", "If", [some], attributes, outputs=outputs, name=names.fresh(f"{loop.node.name or 'loop'}_if"))
    return node, [(loop.node.outputs[i], value) for i, value in zip(used, outputs, strict=True)]
