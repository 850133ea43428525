"""Converts operators whose versions align the axes of their operands in different ways.

    7    Add <broadcast = 1, axis = 1> (a, b)  ->  Add (a, Unsqueeze <axes = [1, ...]> (b))   (b's axes are a's from axis 1 on)
         Add <broadcast = 1> (a, b)            ->  Add (a, b)                                 (b's axes are a's last)
         Gemm <broadcast = 1> (a, b, c)        ->  Gemm (a, b, c)
         PRelu (x, slope)                      ->  PRelu (x, Unsqueeze <axes = [1, ...]> (slope))   (one slope for each channel)
    9    MatMul (Transpose (x), v)             ->  Squeeze (MatMul (Transpose (x), Unsqueeze <axes = [1]> (v)))
    21   GroupNormalization <num_groups = g> (x, s, b)  ->  GroupNormalization <num_groups = g, stash_type> (x, s', b')
         with s' = Reshape (Expand (Reshape (s, [-1, 1]), [1, C / g]), [-1])
    8    Max, Min, Mean, Sum of different shapes        <-  refused unless the shapes are known to be equal

The ranks must be known if ``axis`` is set, and for a PRelu with a slope for each channel. onnxruntime fuses a Transpose into a
MatMul of version 9 or later, and then multiplies a vector by the matrix without transposing it. It does not fuse a MatMul of
version 1. GroupNormalization has a scale and bias for each group up to version 18, and for each channel from version 21 on. Version
18 computes in the type of the data, so ``stash_type`` names this type.

Works around ORT-TRANSPOSED-TIMES-VECTOR.
"""

from rewrites.graph.values import dim_of, rank_of, static_dims
from rewrites.migration.step import NotKnownHere, Rule, Step, Unconvertible, Written
from rewrites.ops.versions import concat, reshape, shape_of, squeeze, unsqueeze

__all__ = ["LIFTING", "LOWERING"]

_BETWEEN = frozenset({"Cast", "Identity"})


def _align_second_operand(step: Step) -> Written:
    """Convert arithmetic and Gemm from version 6 to 7: align the second operand's axes with the first's."""
    if not step.has("broadcast") and not step.has("axis"):
        return None
    a, b = step.required(0), step.required(1)
    if step.int_("broadcast", 0) and step.has("axis"):
        axis, behind = step.int_("axis", 0), step.known_rank(0) - step.known_rank(1)
        axis += step.known_rank(0) if axis < 0 else 0
        rank = step.known_rank(1)
        b = unsqueeze(step.builder, b, list(range(rank, rank + behind - axis)))
    inputs = [a, b, *step.node.inputs[2:]]
    return step.rewrite_with(inputs, broadcast=None, axis=None)


def _align_slope(step: Step) -> Written:
    """Convert PRelu from version 6 to 7: align the only axis of the slope with the channels."""
    slope, dims = step.required(1), static_dims(step.required(1))
    if dims is None:
        step.known_rank(1)
    if step.known_rank(1) != 1 or dims == (1,) or step.known_rank(0) <= 2:
        return None
    return step.rewrite_with([step.required(0), unsqueeze(step.builder, slope, list(range(1, step.known_rank(0) - 1)))])


def _write_vector_as_column(step: Step) -> Written:
    left, right, b = step.required(0), step.required(1), step.builder
    node = left.producer()
    while node is not None and node.op_type in _BETWEEN and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    if node is None or node.op_type != "Transpose" or rank_of(right) != 1:
        return None
    rank = rank_of(left) or len(node.attributes.get_ints("perm", ()))
    return [squeeze(b, b.op("MatMul", left, unsqueeze(b, right, [1])), [rank - 1])] if rank > 1 else None


def _repeat_group_parameters(step: Step) -> Written:
    """Convert GroupNormalization from version 18 to 21.

    The scale and the bias of each group are repeated for the channels of the group.
    """
    b, x, groups, dtype = step.builder, step.required(0), step.int_("num_groups", 1), step.dtype()
    if groups < 1:
        raise Unconvertible(f"its attribute 'num_groups' is {groups}")
    channels = dim_of(x, 1)
    if isinstance(channels, int):
        each = b.const([1, channels // groups])
    else:
        each = concat(b, [b.const([1]), b.op("Div", shape_of(b, x, 1), b.const([groups]))], 0)
    scale, bias = (reshape(b, b.op("Expand", reshape(b, step.required(i), [-1, 1]), each), [-1]) for i in (1, 2))
    return step.rewrite_with([x, scale, bias], stash_type=int(dtype))


def _require_equal_shapes(step: Step) -> None:
    shapes = {None if value is None or value.shape is None else tuple(map(str, value.shape)) for value in step.node.inputs}
    if len(step.node.inputs) > 1 and (len(shapes) > 1 or any("None" in (shape or ("None",)) for shape in shapes)):
        raise NotKnownHere("its operands are not known to have the same shape")


_BROADCASTING = ("Add", "And", "Div", "Equal", "Gemm", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")

LIFTING: dict[tuple[str, int], Rule] = {
    **{(name, 7): _align_second_operand for name in _BROADCASTING},
    ("GroupNormalization", 21): _repeat_group_parameters,
    ("MatMul", 9): _write_vector_as_column,
    ("PRelu", 7): _align_slope,
}

LOWERING: dict[tuple[str, int], Rule] = {
    **{(name, 8): _require_equal_shapes for name in ("Max", "Mean", "Min", "Sum")},
}
