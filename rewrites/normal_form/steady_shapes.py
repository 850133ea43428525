"""Whether a Loop's states keep their shapes from step to step, as a Scan's have to.

One inference of the body, from the shapes of the initial values, tells: if the body gives the same shapes back, induction gives
them for all steps.
"""

import onnx_ir as ir

from rewrites.context import Context
from rewrites.inference import infer_node
from rewrites.loops import LoopView
from rewrites.moving import node_graphs
from rewrites.not_applicable import NotApplicable
from rewrites.values import rank_of

__all__ = ["unsettled_shapes"]


def unsettled_shapes(loop: LoopView, ctx: Context) -> NotApplicable | None:
    """Say which state may change its shape, or which result has no known rank; None where all is settled.

    The values of the body have the shapes found then, else those they had. A declared shape proves nothing of a state, and counts
    for other values only where nothing can be inferred.
    """
    values = [value for node in loop.body for value in node.outputs]
    before = {value: value.shape for value in [*loop.body.inputs, *values]}
    for value in values:
        producer = value.producer()
        if producer is not None and not node_graphs(producer):
            value.shape = None
    for state in loop.states:
        state.inner.shape = state.initial.shape
    for node in loop.body:
        infer_node(node, ctx.model.opset_imports, ctx.model.ir_version)
    refusal = _changing_state(loop)
    for value in values:
        value.shape = before[value] if value.shape is None else value.shape
    vague = next((output.inner for output in loop.scan_outputs if rank_of(output.inner) is None), None)
    if refusal is None and vague is not None:
        refusal = NotApplicable("RANK-UNKNOWN", f"the rank of the result '{vague.name}' is not known, which a Scan needs")
    if refusal is not None:
        for value, shape in before.items():
            value.shape = shape
    return refusal


def _changing_state(loop: LoopView) -> NotApplicable | None:
    for state in loop.states:
        given, back = state.initial.shape, state.next.shape
        if given is None or back is None or not _provably_equal(given, back):
            detail = f"state '{state.inner.name}' starts with the shape {given}, and the body gives {back}"
            return NotApplicable("LOOP-STATE-SHAPE", detail)
    return None


def _provably_equal(one: ir.Shape, other: ir.Shape) -> bool:
    if len(one) != len(other):
        return False
    return all(
        left == right if isinstance(left, int) or isinstance(right, int) else left.value is not None and left.value == right.value
        for left, right in zip(one.dims, other.dims, strict=True)
    )
