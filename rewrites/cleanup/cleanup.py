"""What makes nodes plain again, such as the steps of an unrolled loop: constants folded, branches decided, copies and repeated
work shared, steps read out of stacks read where they are made, and what nobody reads removed.
"""

from collections.abc import Iterable, Sequence

import onnx_ir as ir

from rewrites.analysis.dependence import unread_nodes
from rewrites.cleanup.constant_branches import inline_decided, is_if
from rewrites.cleanup.copies import copies_among, drop_copies
from rewrites.cleanup.folding import fold, put_constants
from rewrites.cleanup.merging import equal_nodes, merge_equal
from rewrites.cleanup.stacked_reads import read_steps
from rewrites.graph.context import Context
from rewrites.graph.dims import refined, without_names
from rewrites.graph.node_inference import put_shapes, told_anew
from rewrites.graph.replace import remove_nodes
from rewrites.graph.values import static_dims
from rewrites.graph.walk import node_graphs

__all__ = ["clean_up"]


def clean_up(graph: ir.Graph, nodes: Sequence[ir.Node], ctx: Context) -> list[ir.Node]:
    """Simplify ``nodes`` of ``graph`` (in order) as far as it goes, branches included; return those that are left, in order."""
    allowance = ctx.options.unroll.bytes
    nodes, changed = list(nodes), True
    while changed:
        folded = _fold(nodes, allowance, ctx)
        allowance -= folded
        drop_copies(copies_among(_in(graph, nodes), ctx.opset), ctx.names, ctx.opset)
        nodes, decided = inline_decided(_in(graph, nodes), ctx)
        learned = _infer(nodes, ctx)
        changed = bool(decided or (folded and learned))
    for node in nodes:
        for branch in node_graphs(node) if is_if(node) else ():
            clean_up(branch, list(branch), ctx)
    read_steps(nodes, ctx)
    merge_equal(equal_nodes(nodes), ctx.names)
    remove_nodes(unread_nodes(graph))
    return _in(graph, nodes)


def _in(graph: ir.Graph, nodes: Iterable[ir.Node]) -> list[ir.Node]:
    return [node for node in nodes if node.graph is graph]


def _fold(nodes: Sequence[ir.Node], allowance: int, ctx: Context) -> int:
    """Let constant work among ``nodes`` be constants, of ``allowance`` bytes at most in all; return their bytes, 0 for none."""
    inner = (node for node in nodes if not any(value.is_graph_output() for value in node.outputs))
    folded = fold(inner, ctx)
    put_shapes(folded.learned)
    taken = sum(folded.known[value].nbytes for node in folded.done for value in node.outputs if value in folded.known)
    if not folded.done or taken > allowance:
        return 0
    put_constants(folded, ctx)
    return max(1, taken)


def _infer(nodes: Sequence[ir.Node], ctx: Context) -> bool:
    """Find the shapes of results that are not known, or not in full; return whether one is known better now."""
    learned = False
    for node in nodes:
        vague = [value for value in node.outputs if static_dims(value) is None]
        found = told_anew(node, ctx.infer) if vague and not node_graphs(node) else {}
        for value in vague if found else ():
            value.shape = refined(without_names(found[value]), value.shape, found[value])
            learned = learned or static_dims(value) is not None
    return learned
