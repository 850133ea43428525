"""What a result's shape must be: that of the node's output, with the steps in front."""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.batching.call import Call, Result
from rewrites.graph.dims import differ, refined, with_axes, without_names
from rewrites.graph.values import dim_of

__all__ = ["settle_shapes"]


def settle_shapes(call: Call, results: Sequence[Result], built: Sequence[ir.Node]) -> None:
    """Complete the types and shapes of results, as far as ``built`` makes them, by what is known of one step.

    Refuses with ``SHAPE-MISMATCH`` or ``TYPE-MISMATCH`` where what was inferred outside contradicts what the body declares.
    """
    for output, result in zip(call.node.outputs, results, strict=True):
        value = result.value
        if value.producer() not in built:
            continue
        if value.type is None:
            value.type = output.type
        elif output.type is not None and output.type != value.type:
            raise call.refuse("TYPE-MISMATCH", f"{output.name!r} is declared {output.type} and computed as {value.type}")
        if output.shape is not None:
            one_step = without_names(output.shape)
            wanted = with_axes(one_step, 0, _steps_dim(call)) if result.batched else one_step
            if differ(value.shape, wanted):
                detail = f"{output.name!r} is declared {output.shape} in one step and computed as {value.shape}"
                raise call.refuse("SHAPE-MISMATCH", detail)
            value.shape = refined(without_names(value.shape), wanted, value.shape)


def _steps_dim(call: Call) -> int | str | None:
    for operand in call.operands:
        if operand is not None and operand.batched and operand.value.shape is not None:
            return dim_of(operand.value, 0)
    return None
