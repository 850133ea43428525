"""What shapes have to do with each other: which are the same, which cannot be, and what a loop makes of one."""

import onnx_ir as ir

from rewrites.graph.values import shape_dims
from rewrites.graph.walk import all_nodes, inner_graphs
from rewrites.loops import ScanView

__all__ = [
    "FREE",
    "VARIES",
    "Dim",
    "differ",
    "dims_of",
    "equal",
    "forget_variations",
    "into_scan",
    "is_made_up",
    "is_open",
    "is_unknown",
    "out_of_scan",
    "refined",
    "same",
    "stacked",
    "varies",
    "without_names",
]

Dim = int | ir.SymbolicDimProtocol

VARIES = "varies "
FREE = "free dim "
"""What the names start with that dimensions of inputs get which have none."""
_INVENTED = "unk__"


def is_made_up(name: str) -> bool:
    """Whether the name of a dimension was made up here or by onnx's inference."""
    return name.startswith((FREE, VARIES, _INVENTED))


def varies(dim: Dim) -> bool:
    """Whether ``dim`` is known not to be one number."""
    if isinstance(dim, int):
        return False
    name = dim.value
    return name is not None and name.startswith(VARIES)


def forget_variations(graph: ir.Graph) -> None:
    """Leave out the names of dimensions that vary: another search would give them to other dimensions."""
    inputs = [value for inner in inner_graphs(graph) for value in inner.inputs]
    for value in [*inputs, *(value for node in all_nodes(graph) for value in node.outputs)]:
        if value.shape is not None and any(map(varies, value.shape.dims)):
            value.shape = ir.Shape([None if varies(dim) else dim for dim in value.shape.dims])


def into_scan(loop: ScanView) -> list[tuple[ir.Value, ir.Shape | None]]:
    """Return the inputs of a Scan's body, each with the shape that it has by what the Scan is given."""
    found = [(state.inner, state.initial.shape) for state in loop.states]
    for scan in loop.scan_inputs:
        dims = None if scan.outer.shape is None else list(scan.outer.shape.dims)
        if dims is not None:
            del dims[scan.axis]
        found.append((scan.inner, None if dims is None else ir.Shape(dims)))
    return found


def out_of_scan(loop: ScanView, *, named: bool) -> list[tuple[ir.Value, ir.Shape]]:
    """Return the results a Scan stacks with the shapes its body tells; ``named``: names of dimensions mean the same outside."""
    found = []
    for output in loop.scan_outputs:
        shape = output.inner.shape
        if output.outer is not None and shape is not None:
            dims = list((shape if named else without_names(shape)).dims)
            axis = output.axis % (len(dims) + 1)
            found.append((output.outer, ir.Shape([*dims[:axis], loop.steps, *dims[axis:]])))
    return found


def stacked(shape: ir.Shape | None) -> ir.Shape | None:
    """Return the shape of what a Loop stacks of values of ``shape``."""
    return None if shape is None else ir.Shape([None, *(None if varies(dim) else dim for dim in shape.dims)])


def without_names(shape: ir.Shape) -> ir.Shape:
    """Leave out names of dimensions, which may mean something else outside the body that declares them."""
    return ir.Shape([dim if isinstance(dim, int) else None for dim in shape.dims])


def refined(found: ir.Shape | None, declared: ir.Shape | None) -> ir.Shape | None:
    """Return ``found``, with what only ``declared`` knows."""
    if found is None or declared is None or len(found) != len(declared):
        return declared if found is None else found
    pairs = zip(dims_of(found) or (), dims_of(declared) or (), strict=True)
    return ir.Shape([other if one is None else one for one, other in pairs])


def is_open(value: ir.Value) -> bool:
    """Whether ``value`` may be a tensor, of a shape that is not known."""
    return value.shape is None and isinstance(value.type, ir.TensorType | None)


def same(one: ir.Value, other: ir.Value) -> bool:
    """Whether two shapes are known, and known to be the same."""
    dims = dims_of(one.shape)
    return dims is not None and None not in dims and dims == dims_of(other.shape)


def is_unknown(dim: Dim) -> bool:
    """Whether nothing is known of ``dim``."""
    return not isinstance(dim, int) and (dim.value is None or dim.value.startswith(_INVENTED))


def differ(one: ir.Shape | None, other: ir.Shape | None) -> bool:
    """Whether two shapes cannot be the same."""
    if one is None or other is None:
        return False
    if len(one) != len(other):
        return True
    pairs = zip(one.dims, other.dims, strict=True)
    return any(isinstance(left, int) and isinstance(right, int) and left != right for left, right in pairs)


def equal(left: Dim, right: Dim) -> bool:
    """Whether two dimensions are known to be the same."""
    if isinstance(left, int) or isinstance(right, int):
        return left == right
    return left.value is not None and left.value == right.value


def dims_of(shape: ir.Shape | None) -> list[int | str | None] | None:
    """Return the dimensions as numbers, names, or None."""
    return None if shape is None else shape_dims(shape)
