"""Names of types and shapes for messages.

Element types have their numpy names: ``float32``, not ``FLOAT`` or ``Tensor(FLOAT)``. An unknown size is ``?``.
"""

from collections.abc import Iterable

import onnx_ir as ir

from rewrites.graph.values import shape_dims

__all__ = ["shape_name", "type_name"]

_OTHER_NAMES = {ir.DataType.FLOAT: "float32", ir.DataType.DOUBLE: "float64"}


def type_name(kind: ir.TypeProtocol | int | None) -> str:
    """Return the name of a type for messages.

    ``kind``: an element type or the type of a value; None if it is unknown.
    """
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


def shape_name(shape: ir.Shape | Iterable[int | str | None] | None) -> str:
    """Return a shape for messages, such as ``[3, T, ?]``.

    ``shape``: the shape or its dimensions; None if the rank is unknown.
    """
    if shape is None:
        return "of an unknown rank"
    dims = shape_dims(shape) if isinstance(shape, ir.Shape) else shape
    return f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"
