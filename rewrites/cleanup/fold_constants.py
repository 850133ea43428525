"""Replaces constant nodes of a body by their results, and Ifs with constant conditions by one branch.

    k = Concat(Shape(W)[0:1], [-1]); y = Reshape(x, k)    ->    y = Reshape(x, [4, -1])

The rule folds Constant nodes, nodes with constant inputs, and Shape or Size of known dimensions. It folds all such nodes of a body
at once, and then repeats shape inference for the nodes that read the results.

These nodes stay:

- nodes whose results have an unknown size or more than ``_LARGEST`` bytes
- nodes that read or return strings
- random operators
- divisions of integers by 0
- nodes that compute a body output
- each DequantizeLinear of the weights of a quantized product
"""

import onnx_ir as ir

from rewrites.base.plain_text import counted
from rewrites.cleanup.constant_branches import constant_branch, inline_ifs_among, is_if
from rewrites.cleanup.folding import fold, put_constants
from rewrites.graph.context import Context
from rewrites.graph.node_inference import learn_shapes, put_shapes
from rewrites.loops import Loop
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the body has constant nodes, or Ifs with constant conditions."""
    inner = (node for node in loop.body if not any(value.is_graph_output() for value in node.outputs))
    folded = fold(inner, ctx)
    ifs = [node for node in loop.body if is_if(node) and constant_branch(node, ctx) is not None]
    if not folded.nodes and not ifs:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        put_shapes(folded.inferred)
        inline_ifs_among(ifs, ctx)
        readers = {user for node in folded.nodes for value in node.outputs for user, _ in value.uses()}
        put_constants(folded, ctx)
        learn_shapes(loop.body, readers, ctx.model.opset_imports, ctx.model.ir_version)
        return [loop.node]

    what = [f"folded {counted(len(folded.nodes), 'constant node')}"] if folded.nodes else []
    what += ["replaced Ifs with constant conditions by one branch"] if ifs else []
    return Patch(" and ".join(what), edit)


RULE = Rule("fold-constants", "cleanup", "loop", check)
