"""Lets a body or branch read a value directly instead of through a Cast to a wider type and back.

    d = Cast <to = double> (x)  y = Cast <to = float> (d)  If (c) <then: Neg (y)>    ->    If (c) <then: Neg (x)>

onnxruntime drops such Casts, because they change no number. It forgets that nodes in inner graphs read their results, and then
reports "Missing Input: y". Casts to a type that does not represent all numbers of the original type stay.

Works around ORT-RETURNING-CASTS.
"""

import numpy as np
import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.values import producer_of, through_identity
from rewrites.graph.walk import all_nodes
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_WHOLE_64 = (ir.DataType.INT64, ir.DataType.UINT64)


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if a body or branch reads a value through Casts to a wider type and back."""
    del ctx
    reads = [
        (node, index, source)
        for node in all_nodes(model.graph)
        for index, value in enumerate(node.inputs)
        if value is not None and value.graph is not node.graph and value.producer() is not None
        if (source := _cast_source(value)) is not None
    ]

    def edit() -> list[ir.Node]:
        for node, index, source in reads:
            node.replace_input_with(index, source)
        return []

    return Patch("reads values instead of Casts there and back, whose users onnxruntime forgets", edit) if reads else NOTHING_HERE


def _cast_source(value: ir.Value) -> ir.Value | None:
    """Return the value of the same type and graph from which lossless Casts compute ``value``, or None."""
    source, kinds = None, [value.dtype]
    current = through_identity(value)
    while (node := producer_of(current, "Cast")) is not None:
        current = through_identity(node.inputs[0])
        if current is None or current.graph is not value.graph or current.dtype is None:
            break
        if current.dtype == value.dtype and all(_represents(kind, current.dtype) for kind in kinds):
            source = current
        kinds.append(current.dtype)
    return source


def _represents(wide: ir.DataType | None, narrow: ir.DataType) -> bool:
    """Return True if the type ``wide`` represents all numbers of the type ``narrow``."""
    if wide is None or ir.DataType.STRING in (wide, narrow):
        return False
    if wide == narrow:
        return True
    if narrow == ir.DataType.BFLOAT16:
        return wide in (ir.DataType.FLOAT, ir.DataType.DOUBLE)
    if narrow in _WHOLE_64 and wide.is_floating_point():
        return False
    return bool(np.can_cast(narrow.numpy(), wide.numpy()))


RULE = Rule("read-past-returning-casts", "tidy", "model", check, use="always")
