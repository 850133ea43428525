"""A node without a kernel for its type runs in a wider type that has one, where that gives the same numbers.

    y = Tanh (x) of bfloat16    ->    y = Cast (Tanh (Cast (x, float)), bfloat16)

Every number of the narrow type is one of the wide type. bfloat16 through float32 is what processors without bfloat16 do, and what
onnxruntime does for float16. Whole numbers wrap around when they are cast back, as they would have in the narrow type. This is the
form without Python, so it is looked for first.
"""

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.context import Context
from rewrites.graph.moving import remove_nodes
from rewrites.graph.replace import replace_value
from rewrites.python_ops.one_node import node_model

__all__ = ["run_wider"]

_WIDER = {
    ir.DataType.BFLOAT16: ir.DataType.FLOAT,
    ir.DataType.INT8: ir.DataType.INT32,
    ir.DataType.UINT8: ir.DataType.INT32,
    ir.DataType.INT16: ir.DataType.INT32,
    ir.DataType.UINT16: ir.DataType.INT32,
    ir.DataType.UINT32: ir.DataType.INT64,
}
_BY_TYPE = frozenset({"Cast", "CastLike", "BitCast", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "BitShift"})


def run_wider(node: ir.Node, ctx: Context) -> str | None:
    """Put casts around ``node``, and return words for it; None, and nothing done, where no wider type has a kernel."""
    narrow = next((value.dtype for value in (*node.inputs, *node.outputs) if value is not None and value.dtype in _WIDER), None)
    if narrow is None or node.op_type in _BY_TYPE or ctx.has_kernel is None:
        return None
    if any(attribute.name in ("dtype", "to", "stash_type") or attribute.is_ref() for attribute in node.attributes.values()):
        return None
    if node.op_type == "Pow" and narrow != ir.DataType.BFLOAT16:
        return None
    wide = _WIDER[narrow]
    build = ctx.builder()
    inputs = [
        build.op("Cast", value, to=int(wide)) if value is not None and value.dtype == narrow else value for value in node.inputs
    ]
    made = build.like(node, inputs)
    for old, new in zip(node.outputs, made, strict=True):
        new.type = ir.TensorType(wide) if old.dtype == narrow else old.type
        new.shape = old.shape
    anew = made[0].producer()
    assert anew is not None
    model = node_model(anew, ctx)
    if isinstance(model, NotApplicable) or not ctx.has_kernel(model):
        build.discard()
        return None
    results = [
        build.op("Cast", new, to=int(narrow), hint=old.name) if old.dtype == narrow else new
        for old, new in zip(node.outputs, made, strict=True)
    ]
    build.insert_before(node)
    for old, new in zip(node.outputs, results, strict=True):
        new.type, new.shape = old.type, old.shape
        replace_value(old, new, ctx.names)
    remove_nodes([node])
    return f"it runs in {wide.name.lower()}, between casts"
