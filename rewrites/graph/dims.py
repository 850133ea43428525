"""The algebra of sizes: which shapes are the same, which cannot be, what several have in common, and what they know together.

A dimension is a number, a name, or not known. In one graph a name is one size wherever it is met, but for one that says of a size
that it ``varies``. A shape is None where not even its rank is known.
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
"""What the names start with of dimensions that are not one number."""
FREE = "free dim "
"""What the names start with that dimensions of inputs get which have none."""
_INVENTED = "unk__"


def is_made_up(name: str) -> bool:
    """Return True if the name of a dimension was made up here or by onnx's inference."""
    return name.startswith((FREE, VARIES, _INVENTED))


def varies(dim: Dim) -> bool:
    """Return True if ``dim`` is known not to be one number."""
    return not isinstance(dim, int) and dim.value is not None and dim.value.startswith(VARIES)


def is_unknown(dim: Dim) -> bool:
    """Return True if nothing is known of ``dim``."""
    return not isinstance(dim, int) and (dim.value is None or dim.value.startswith(_INVENTED))


def is_one_size(dim: Dim) -> bool:
    """Return True if ``dim`` is a number, or has a name that stands for one size wherever it is met."""
    return not is_unknown(dim) and not varies(dim)


def is_vague(shape: ir.Shape | None) -> bool:
    """Return True if the rank of ``shape`` is known, and one of its sizes has neither a number nor a name."""
    return shape is not None and None in shape_dims(shape)


def equal(left: Dim, right: Dim) -> bool:
    """Return True if two dimensions are known to be the same."""
    if isinstance(left, int) or isinstance(right, int):
        return left == right
    return left.value is not None and left.value == right.value


def same(left: ir.Shape | None, right: ir.Shape | None) -> bool:
    """Return True if two shapes are known, and known to be the same."""
    return left is not None and right is not None and len(left) == len(right) and all(map(equal, left.dims, right.dims))


def differ(left: ir.Shape | None, right: ir.Shape | None) -> bool:
    """Return True if two shapes cannot be the same: the ranks are two, or two numbers stand in one place."""
    if left is None or right is None:
        return False
    pairs = zip(left.dims, right.dims, strict=False)
    return len(left) != len(right) or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)


def meet(shapes: Sequence[ir.Shape | None], unlike: _Known = lambda _: None) -> ir.Shape | None:
    """Return the sizes that all ``shapes`` have; ``unlike`` returns what is known of one that may differ between them."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes) or len({len(shape) for shape in known}) != 1:
        return None
    columns = zip(*(shape.dims for shape in known), strict=True)
    return ir.Shape([dims[0] if all(equal(dims[0], dim) for dim in dims) else unlike(dims) for dims in columns])


def refined(*shapes: ir.Shape | None) -> ir.Shape | None:
    """Return what ``shapes``, all of one value, know together; the first that knows a size counts. Other ranks than the first say
    nothing.
    """
    known = [shape for shape in shapes if shape is not None]
    alike = [shape_dims(shape) for shape in known if len(shape) == len(known[0])]
    dims = [next((dim for dim in column if dim is not None), None) for column in zip(*alike, strict=True)]
    return known[0] if known and dims == alike[0] else ir.Shape(dims) if known else None


def forgotten(shape: ir.Shape | None, which: Callable[[Dim], bool]) -> ir.Shape | None:
    """Return ``shape`` without what it says of the dimensions ``which`` is true of."""
    if shape is None or not any(map(which, shape.dims)):
        return shape
    return ir.Shape([None if which(dim) else dim for dim in shape.dims])


def without_names(shape: ir.Shape | None) -> ir.Shape | None:
    """Leave out names of dimensions, which may mean something else outside the body that declares them."""
    return forgotten(shape, lambda dim: not isinstance(dim, int))


def without_axis(shape: ir.Shape | None, axis: int) -> ir.Shape | None:
    """Return the shape of what stands at one index of ``axis`` (0 or more)."""
    return None if shape is None else ir.Shape([dim for i, dim in enumerate(shape.dims) if i != axis])


def with_size(shape: ir.Shape | None, axis: int, size: int | str | None) -> ir.Shape | None:
    """Return the shape with ``size`` along ``axis`` (0 or more) instead of what it has there."""
    return None if shape is None else ir.Shape([size if i == axis else dim for i, dim in enumerate(shape.dims)])


def with_axes(shape: ir.Shape | None, axis: int, *sizes: int | str | None) -> ir.Shape | None:
    """Return the shape with axes of ``sizes`` more, the first of which is its axis ``axis`` then."""
    return None if shape is None else ir.Shape([*shape.dims[:axis], *sizes, *shape.dims[axis:]])
