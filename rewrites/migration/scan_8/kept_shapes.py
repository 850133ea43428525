"""Decides if a step of an opset-8 Scan may change the shape of a state.

Only steps that do not fail matter. For example, if a body reads a state h [N, 7] and a scan input x [M, 5]:

    Add(h, h)               is [N, 7] again
    Add(MatMul(x, w), h)    is [M, 7] if N is 1, so it may change the shape of the state
    Concat(x, h, axis=1)    fails unless M = N or an operand is empty; if neither is empty, M = N after this node

Each unknown size of the Scan's inputs gets a name, and shape inference runs on the body with these names. If a node only succeeds
for equal sizes, such as this Concat, the inference is repeated with these sizes equal. onnxruntime's Concat also accepts an empty
operand whose other sizes differ. So the inference is also repeated with each size of a Concat set to 0.
"""

from collections.abc import Iterator

import onnx_ir as ir

from rewrites.analysis.shapes.bodies import infer_body
from rewrites.graph.context import Context
from rewrites.graph.dims import FREE, Dim, is_one_size, is_unknown, same
from rewrites.graph.node_inference import contradicts, shapes_kept
from rewrites.graph.walk import inner_values
from rewrites.loops import ScanView

__all__ = ["may_change"]


_CASES = 32
_BROADCAST = frozenset({"Add", "Sub", "Mul", "Div"})
_KnownSize = int | str | None
_Shapes = list[ir.Shape | None]


def may_change(loop: ScanView, ctx: Context) -> bool:
    """Return True if a step may change the shape of a state of ``loop``, an opset-8 Scan."""
    if _states_keep_shapes(loop):
        return False
    input_shapes = [_shape_of_row(state.initial, 1) for state in loop.states]
    input_shapes += [_shape_of_row(scan.outer, 2) for scan in loop.scan_inputs]
    cases, tried = [input_shapes], 0
    with shapes_kept([*loop.body.inputs, *inner_values(loop.body)]):
        while cases and tried < _CASES:
            shapes, tried = cases.pop(), tried + 1
            next_cases = _try_shapes(loop, shapes, ctx)
            if next_cases is None:
                return True
            cases += next_cases
    return bool(cases)


def _states_keep_shapes(loop: ScanView) -> bool:
    return all(same(state.inner.shape, state.next.shape) for state in loop.states)


def _try_shapes(loop: ScanView, input_shapes: _Shapes, ctx: Context) -> list[_Shapes] | None:
    """Infer the shapes of the body values from ``input_shapes``, the shapes of the body's inputs.

    Returns:
        * None if a state may change its shape for these input shapes.
        * An empty list if no state changes its shape. A body that fails for these input shapes counts as such a body, because only
          steps that do not fail matter.
        * A list of other input shapes to try next if a node requires that some sizes are equal (or 0). Each item of the list is
          ``input_shapes`` with two of these sizes made equal (or one set to 0).
    """
    fails = False

    def infer(node: ir.Node) -> None:
        nonlocal fails
        if node.op_type == "Concat" and node.domain == "":
            node.outputs[0].shape = _concat_shape(node)
            return
        ctx.infer(node)
        if node in own and node.op_type in _BROADCAST and node.outputs[0].shape is None:
            fails = fails or contradicts(node, ctx.model.opset_imports, ctx.model.ir_version)

    own = set(loop.body)
    for value, shape in zip(loop.body.inputs, input_shapes, strict=True):
        value.shape = shape
    infer_body(loop.body, ctx.opset, infer)
    if fails:
        return []
    for node in loop.body:
        equalities = next(_required_equalities(node), None)
        if equalities is not None:
            return [[_with_equal_size(shape, name, other) for shape in input_shapes] for name, other in equalities]
    return [] if _states_keep_shapes(loop) else None


def _shape_of_row(value: ir.Value, outer_axes: int) -> ir.Shape | None:
    """Return the shape of ``value`` without the axes of rows and steps, its first ``outer_axes`` axes.

    Each unknown size in the result gets a name of its own.
    """
    if value.shape is None:
        return None
    dims = [f"{FREE}{value.name}.{i}" if is_unknown(dim) else dim for i, dim in enumerate(value.shape.dims)]
    return ir.Shape(dims[outer_axes:])


def _required_equalities(node: ir.Node) -> Iterator[list[tuple[str, int | str]]]:
    """Yield lists of equations between sizes. ``node`` fails unless an equation of each list is true.

    For example, [("M", "N"), ("M", 0), ("N", 0)] means that M = N, M = 0 or N = 0. Each pair has the name of a size, and the size
    that it equals.
    """
    dims = _operands(node)
    if node.op_type == "Concat" and dims is not None:
        nonempty = [sizes for sizes in dims if 0 not in sizes]
        flat = [dim for sizes in nonempty for dim in sizes]
        zeros: list[tuple[str, int | str]] = [(dim, 0) for dim in dict.fromkeys(flat) if isinstance(dim, str)]
        pairs = [] if None in flat else _pairs_of_equal_sizes(nonempty, _axis(node, dims))
    elif node.op_type == "MatMul" and dims is not None and min(map(len, dims)) > 1:
        pairs, zeros = [(dims[0][-1], dims[1][-2])], []
    else:
        return
    for left, right in pairs:
        if isinstance(left, str) and right is not None and left != right:
            yield [(left, right), *zeros]
        elif isinstance(right, str) and left is not None and left != right:
            yield [(right, left), *zeros]


def _concat_shape(node: ir.Node) -> ir.Shape | None:
    """Return the shape of the result of a Concat, or None if its operands may not fit together.

    An empty operand fits any other operand.
    """
    dims = _operands(node)
    if dims is None or not dims[0]:
        return None
    axis = _axis(node, dims)
    nonempty = [sizes for sizes in dims if 0 not in sizes] or dims
    if any(left is None or left != right for left, right in _pairs_of_equal_sizes(nonempty, axis)):
        return None
    lengths = [sizes[axis] for sizes in dims]
    numbers = [dim for dim in lengths if isinstance(dim, int)]
    total = sum(numbers) if len(numbers) == len(lengths) else lengths[0] if len(lengths) == 1 else None
    return ir.Shape([total if i == axis else dim for i, dim in enumerate(nonempty[0])])


def _operands(node: ir.Node) -> list[list[_KnownSize]] | None:
    """Return the sizes of all operands of ``node``.

    Return None if a rank is unknown, if the operands of a Concat differ in rank, or if the operator is not a standard operator.
    """
    shapes = [value.shape for value in node.inputs if value is not None and value.shape is not None]
    if node.domain != "" or len(shapes) < len(node.inputs):
        return None
    dims = [list(map(_known_size, shape.dims)) for shape in shapes]
    return None if node.op_type == "Concat" and len(set(map(len, dims))) > 1 else dims


def _axis(node: ir.Node, dims: list[list[_KnownSize]]) -> int:
    return node.attributes.get_int("axis", 0) % max(len(dims[0]), 1)


def _pairs_of_equal_sizes(dims: list[list[_KnownSize]], axis: int) -> list[tuple[_KnownSize, _KnownSize]]:
    return [(dims[0][i], sizes[i]) for sizes in dims[1:] for i in range(len(sizes)) if i != axis]


def _known_size(dim: Dim) -> _KnownSize:
    """Return the size ``dim`` as a number, or as a name that means the same size wherever it occurs.

    Return None if ``dim`` is unknown, or if its name may mean different sizes.
    """
    return dim if isinstance(dim, int) else dim.value if is_one_size(dim) else None


def _with_equal_size(shape: ir.Shape | None, name: str, other: int | str) -> ir.Shape | None:
    if shape is None:
        return None
    return ir.Shape([other if not isinstance(dim, int) and dim.value == name else dim for dim in shape.dims])
