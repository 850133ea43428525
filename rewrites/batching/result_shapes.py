"""What a result's shape must be: that of the node's output, with the steps in front."""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.batching.call import Call, Result
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
            wanted: list[int | str | None] = [dim if isinstance(dim, int) else None for dim in output.shape.dims]
            value.shape = _merge(call, output, value, [_steps_dim(call), *wanted] if result.batched else wanted)


def _steps_dim(call: Call) -> int | str | None:
    for operand in call.operands:
        if operand is not None and operand.batched and operand.value.shape is not None:
            return dim_of(operand.value, 0)
    return None


def _merge(call: Call, output: ir.Value, value: ir.Value, wanted: Sequence[int | str | None]) -> ir.Shape:
    if value.shape is None:
        return ir.Shape(wanted)
    found = value.shape.dims
    clash = len(found) != len(wanted) or any(
        isinstance(one, int) and isinstance(other, int) and one != other for one, other in zip(found, wanted, strict=True)
    )
    if clash:
        raise call.refuse("SHAPE-MISMATCH", f"{output.name!r} is declared {output.shape} in one step and computed as {value.shape}")
    known = (isinstance(one, int) or (one.value is not None and other is None) for one, other in zip(found, wanted, strict=True))
    return ir.Shape([one if keep else other for one, other, keep in zip(found, wanted, known, strict=True)])
