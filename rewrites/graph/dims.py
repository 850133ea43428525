"""Compares, combines and changes shapes.

A dimension is a number, a name, or unknown. In one graph, all dimensions of one name have the same size, except for names with the
prefix ``VARIES``: the size of such a dimension may change from step to step of a loop. A shape is None if its rank is unknown.
"""

from collections.abc import Callable, Sequence

import onnx_ir as ir

from rewrites.graph.values import shape_dims

__all__ = [
    "FREE",
    "VARIES",
    "Dim",
    "differ",
    "equal",
    "forgotten",
    "is_made_up",
    "is_one_size",
    "is_unknown",
    "is_vague",
    "meet",
    "refined",
    "same",
    "varies",
    "with_axes",
    "with_size",
    "without_axis",
    "without_names",
]

Dim = int | ir.SymbolicDimProtocol
_Known = Callable[[Sequence[Dim]], int | str | None]

VARIES = "varies "
"""The prefix of names of dimensions that change from step to step."""
FREE = "free dim "
"""The prefix of the names given to unnamed dimensions of inputs."""
_INVENTED = "unk__"


def is_made_up(name: str) -> bool:
    """Return True if ortscan or onnx's shape inference invented ``name``, the name of a dimension."""
    return name.startswith((FREE, VARIES, _INVENTED))


def varies(dim: Dim) -> bool:
    """Return True if ``dim`` is known to change from step to step."""
    return not isinstance(dim, int) and dim.value is not None and dim.value.startswith(VARIES)


def is_unknown(dim: Dim) -> bool:
    """Return True if ``dim`` is neither a number nor a name of the model.

    A dimension whose name was invented by onnx's shape inference counts as unknown.
    """
    return not isinstance(dim, int) and (dim.value is None or dim.value.startswith(_INVENTED))


def is_one_size(dim: Dim) -> bool:
    """Return True if ``dim`` has the same known size, as a number or a name, in all steps of a loop."""
    return not is_unknown(dim) and not varies(dim)


def is_vague(shape: ir.Shape | None) -> bool:
    """Return True if the rank of ``shape`` is known, but a size is unknown: neither a number nor a name."""
    return shape is not None and None in shape_dims(shape)


def equal(left: Dim, right: Dim) -> bool:
    """Return True if two dimensions are known to be equal."""
    if isinstance(left, int) or isinstance(right, int):
        return left == right
    return left.value is not None and left.value == right.value


def same(left: ir.Shape | None, right: ir.Shape | None) -> bool:
    """Return True if two shapes are known to be equal. If a size is unknown, return False."""
    return left is not None and right is not None and len(left) == len(right) and all(map(equal, left.dims, right.dims))


def differ(left: ir.Shape | None, right: ir.Shape | None) -> bool:
    """Return True if two shapes are known to differ in their ranks or in a size.

    Two sizes are known to differ only if both are numbers, and these numbers differ.
    """
    if left is None or right is None:
        return False
    pairs = zip(left.dims, right.dims, strict=False)
    return len(left) != len(right) or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)


def meet(shapes: Sequence[ir.Shape | None], unlike: _Known = lambda _: None) -> ir.Shape | None:
    """Return a shape that fits all ``shapes``. For example, [2, 3] and [2, 4] give [2, unknown].

    A size that is equal in all shapes is kept. For an axis with unequal sizes, ``unlike`` is called with these sizes and returns
    the size to use; by default this is unknown. Return None if the ranks differ or a rank is unknown.
    """
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes) or len({len(shape) for shape in known}) != 1:
        return None
    columns = zip(*(shape.dims for shape in known), strict=True)
    return ir.Shape([dims[0] if all(equal(dims[0], dim) for dim in dims) else unlike(dims) for dims in columns])


def refined(*shapes: ir.Shape | None) -> ir.Shape | None:
    """Combine several ``shapes`` of one value: use the first known size of each axis.

    For example, [unknown, 3] and [2, unknown] give [2, 3]. Shapes that are None, and shapes whose rank differs from the first rank,
    are ignored.
    """
    known = [shape for shape in shapes if shape is not None]
    alike = [shape_dims(shape) for shape in known if len(shape) == len(known[0])]
    dims = [next((dim for dim in column if dim is not None), None) for column in zip(*alike, strict=True)]
    return known[0] if known and dims == alike[0] else ir.Shape(dims) if known else None


def forgotten(shape: ir.Shape | None, which: Callable[[Dim], bool]) -> ir.Shape | None:
    """Return ``shape`` with unknown dimensions in place of all for which ``which`` returns True."""
    if shape is None or not any(map(which, shape.dims)):
        return shape
    return ir.Shape([None if which(dim) else dim for dim in shape.dims])


def without_names(shape: ir.Shape | None) -> ir.Shape | None:
    """Return ``shape`` with each name replaced by an unknown dimension.

    This makes the shape valid in other graphs, in which the name may mean another size.
    """
    return forgotten(shape, lambda dim: not isinstance(dim, int))


def without_axis(shape: ir.Shape | None, axis: int) -> ir.Shape | None:
    """Return ``shape`` without ``axis``, which must not be negative."""
    return None if shape is None else ir.Shape([dim for i, dim in enumerate(shape.dims) if i != axis])


def with_size(shape: ir.Shape | None, axis: int, size: int | str | None) -> ir.Shape | None:
    """Return ``shape`` with ``size`` at ``axis``, which must not be negative."""
    return None if shape is None else ir.Shape([size if i == axis else dim for i, dim in enumerate(shape.dims)])


def with_axes(shape: ir.Shape | None, axis: int, *sizes: int | str | None) -> ir.Shape | None:
    """Return ``shape`` with new axes of the ``sizes`` inserted at index ``axis``."""
    return None if shape is None else ir.Shape([*shape.dims[:axis], *sizes, *shape.dims[axis:]])
