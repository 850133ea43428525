"""Names of types for messages. Element types have their numpy names: ``float32``, not ``FLOAT`` or ``Tensor(FLOAT)``."""

import onnx_ir as ir

__all__ = ["type_name"]

_OTHER_NAMES = {ir.DataType.FLOAT: "float32", ir.DataType.DOUBLE: "float64"}


def type_name(kind: ir.TypeProtocol | int | None) -> str:
    """Return the name of a type for messages. ``kind``: an element type or the type of a value; None if it is unknown."""
    if kind is None:
        return "of an unknown type"
    if isinstance(kind, int):
        element = ir.DataType(kind)
        return _OTHER_NAMES.get(element, element.name.lower())
    if isinstance(kind, ir.TensorType):
        return type_name(kind.dtype)
    inner = type_name(getattr(kind, "elem_type", kind.dtype))
    if isinstance(kind, ir.SequenceType):
        return f"sequence({inner})"
    return f"optional({inner})" if isinstance(kind, ir.OptionalType) else f"sparse_tensor({inner})"
