"""Body nodes that compute a constant become that constant, and an If on a constant the branch that it takes.

    k = Concat(Shape(W)[0:1], [-1]); y = Reshape(x, k)    ->    y = Reshape(x, [4, -1])

Folds nodes whose inputs are constants, Constant nodes themselves, and Shape or Size where the dimensions asked for are known; all
foldable nodes of a body are run at once by the runtime the context gives. What reads them has its shapes inferred again. Never
computes results of more bytes than ``_LARGEST`` or of unknown size; never folds strings, random operators, integers divided by 0,
what dequantizes the weights of a product of dequantized numbers, or a node that gives a body output.
"""

import onnx_ir as ir

from rewrites.base.plain_text import counted
from rewrites.cleanup.constant_branches import inline_decided, is_if, taken_branch
from rewrites.cleanup.folding import fold, put_constants
from rewrites.graph.context import Context
from rewrites.graph.node_inference import learn_shapes, put_shapes
from rewrites.loops import Loop
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Find constant work and run it."""
    inner = (node for node in loop.body if not any(value.is_graph_output() for value in node.outputs))
    folded = fold(inner, ctx)
    ifs = [node for node in loop.body if is_if(node) and taken_branch(node, ctx) is not None]
    if not folded.done and not ifs:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        put_shapes(folded.learned)
        inline_decided(ifs, ctx)
        readers = {user for node in folded.done for value in node.outputs for user, _ in value.uses()}
        put_constants(folded, ctx)
        learn_shapes(loop.body, readers, ctx.model.opset_imports, ctx.model.ir_version)
        return [loop.node]

    what = [f"folded {counted(len(folded.done), 'constant node')}"] if folded.done else []
    what += ["put the branches that constants choose in the place of Ifs"] if ifs else []
    return Patch(" and ".join(what), edit)


RULE = Rule("fold-constants", "cleanup", "loop", check)
