"""Moves loop-invariant nodes before the loop.

    Scan(h0, xs) body(h, x) => Add(MatMul(h, Transpose(W)), x)
    ->    Wt = Transpose(W); Scan(h0, xs) body(h, x) => Add(MatMul(h, Wt), x)

A node moves if it is deterministic and reads only loop-invariant values. Whole nested loops and Ifs move too. If a Loop may run
zero steps, only nodes that cannot fail move.

A DequantizeLinear of a quantized product stays, because onnxruntime multiplies integers only if the DequantizeLinear is in the same
graph as the product. If a moved node computes a body output, an Identity takes its place in the body, because a node of the body
must compute each output. If the opset has no Identity for the type, the node stays.
"""

import onnx_ir as ir

from rewrites.analysis.dependence import cannot_fail, is_deterministic, reads, varying_values
from rewrites.base.plain_text import counted
from rewrites.cleanup.folding import dequantizes_operand
from rewrites.graph.context import Context
from rewrites.graph.replace import can_copy, move_before
from rewrites.loops import Loop
from rewrites.loops.own_results import append_copy
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the body has loop-invariant nodes that can move."""
    stays = varying_values(loop.body, loop.body.inputs)
    moving: list[ir.Node] = []
    for node in loop.body:
        if node.op_type == "Identity" and node.outputs[0].is_graph_output():
            stays.update(node.outputs)
            continue
        free = not any(value in stays for value in reads(node))
        copied = all(can_copy(value, ctx.opset) for value in node.outputs if value.is_graph_output())
        if free and copied and is_deterministic(node) and not dequantizes_operand(node) and (loop.always_runs or cannot_fail(node)):
            moving.append(node)
        else:
            stays.update(node.outputs)
    if not moving:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        for node in moving:
            for value in node.outputs:
                if value.is_graph_output():
                    copy = append_copy(loop.body, value, ctx.names)
                    loop.body.outputs[:] = [copy if output is value else output for output in loop.body.outputs]
        move_before(loop.node, moving, ctx.names)
        return [loop.node]

    return Patch(f"moved loop-invariant work before the loop: {counted(len(moving), 'node')}", edit)


RULE = Rule("hoist-invariants", "cleanup", "loop", check)
