"""The quantities that vary from case to case, and the values to try for each of them.

These quantities are the sizes of free dimensions, and the trip counts of loops. The size of a dimension with a name such as ``2*T``
or ``(L - 1)//2`` is not chosen, but computed from the size of ``T`` or ``L``.
"""

import ast
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx

from ortscan.running.budget import Level
from ortscan.running.constraints import SizeFacts
from ortscan.running.graph_index import all_nodes
from ortscan.verification.inputs.turning_points import Known

__all__ = [
    "Axis",
    "derived_dims",
    "derived_size",
    "dimension_values",
    "largest_compared_size",
    "sizes_from",
    "trip_values",
    "values_to_try",
]

_LARGE = (33, 61, 17, 29)
_LARGER = (131, 137, 139, 149)
_ODD = (11, 13, 9, 15)
_USUAL = (3, 2, 7, 5, 4, 6, 8)
_LEAST_TRIPS, _MOST_TRIPS, _FEW = -2, 200, 3
_BEYOND = (10, 13, 7, 19)
_ONE_MORE = {3: 5, 2: 4}
_COMPARISONS = frozenset(("Greater", "GreaterOrEqual", "Less", "LessOrEqual"))
_MOVES = frozenset(("Cast", "Gather", "Identity", "ReduceMax", "Reshape", "Slice", "Squeeze"))
_LEAST_ASKED, _MOST_ASKED = 8, 1 << 10
"""The range of sizes that are tried because the result compares sizes with them. Smaller sizes are tried anyway, and larger sizes
take too long.
"""
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}


@dataclass(frozen=True)
class Axis:
    """A quantity that varies from case to case: the size of a group of equal dimensions, or a trip count.

    Attributes:
        parts: the names of the dimensions, divided into parts. Dimensions in the same part are always equal. A part may have the
            size 1 and be broadcast, while other parts have another size. For a trip count, the only name is the name of its input.
        values: the values to try, the usual value first.
        is_trip_count: True for a trip count.
    """

    parts: tuple[tuple[str, ...], ...]
    values: tuple[int, ...]
    is_trip_count: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the dimensions in all parts. For a trip count, the name of its input."""
        return [name for part in self.parts for name in part]

    @property
    def has_choice(self) -> bool:
        """True if the axis is a size of dimensions, not a trip count, and there are several sizes to try."""
        return not self.is_trip_count and len(self.values) > 1

    @property
    def can_have_any_size(self) -> bool:
        """True if the axis is a size of dimensions, not a trip count, and no limit of this size is known."""
        return not self.is_trip_count and len(self.values) > 2

    @property
    def smallest_size(self) -> int:
        """The smallest of ``values`` above 0."""
        return min((value for value in self.values if value > 0), default=self.values[0])

    @property
    def larger_size(self) -> int:
        """A size larger than all ``values`` if any size is possible, otherwise the largest of ``values``."""
        return 2 * max(self.values) + 1 if self.can_have_any_size else max(self.values)


def sizes_from(values: tuple[int, ...], minimum: int) -> tuple[int, ...]:
    """Return the sizes to try instead of ``values`` if sizes below ``minimum`` fail.

    The model may accept only multiples of ``minimum``, so some multiples are included.
    """
    sizes = [minimum + value - 1 for value in values if value <= max(minimum, _FEW)]
    return values if minimum <= 1 else tuple(dict.fromkeys((sizes[0], minimum, 2 * minimum, 3 * minimum, *sizes)))


def trip_values(level: Level, named: Sequence[Known] = ()) -> tuple[int, ...]:
    """Return the trip counts to try, the usual count first.

    ``level`` says how thorough the comparison is. ``named`` has constants with which the models compare the trip count. A full
    comparison also tries a few of these constants, if they are small.
    """
    if level == "quick":
        return (3, 1, 2, 0)
    counts = [value for value in named if isinstance(value, int) and _LEAST_TRIPS <= value <= _MOST_TRIPS]
    return tuple(dict.fromkeys((3, 1, 2, 0, 7, 4, 5, 6, 8, 17, 11, 131, -1, *counts[:_FEW])))


def dimension_values(position: int, level: Level = "full") -> tuple[int, ...]:
    """Return the sizes to try for a free dimension of which nothing is known, the usual size first.

    ``position`` is the number of the dimension among all free dimensions. Neighbouring dimensions get different sizes.
    """
    usual = _USUAL[position % len(_USUAL)]
    if level == "quick":
        return tuple(dict.fromkeys((usual, 1, 2, 3, _ONE_MORE.get(usual, usual))))
    large, larger, odd = (series[position % len(series)] for series in (_LARGE, _LARGER, _ODD))
    return tuple(dict.fromkeys((usual, 1, 2, 3, 7, large, odd, 4, 5, 6, 8, 16, larger)))


def values_to_try(
    parts: Sequence[Sequence[str]], other_size: int, position: int, learned: SizeFacts | None, level: Level, largest_compared: int
) -> tuple[int, ...]:
    """Return the sizes to try for a group of dimensions that must be equal, the usual size first.

    Args:
        parts: the names of the dimensions, in parts as in `Axis`.
        other_size: the size that the caller chose for other dimensions of the group, or 1 if there are no such dimensions. If
            ``other_size`` is not 1, the dimensions in ``parts`` can only have this size or 1.
        position: the number of the group.
        learned: the known facts about sizes.
        level: how thorough the comparison is.
        largest_compared: the largest number that the rewritten model compares sizes with, or 0 if there is none. If the dimensions
            may have any size, one of the returned sizes is larger than this number.
    """
    if learned is not None:
        number = next((size for part in parts if (size := learned.required_size(part[0])) is not None), None)
        if number is not None:
            return (number,)
        likely = learned.likely_size(parts[0][0])
        other_size = other_size if likely is None else likely
    if other_size != 1:
        return other_size, 1
    values = dimension_values(position, level)
    return (
        (*values, largest_compared + _BEYOND[position % len(_BEYOND)])
        if largest_compared and max(values) <= largest_compared
        else values
    )


def largest_compared_size(proto: onnx.ModelProto) -> int:
    """Return the largest constant that a model compares a size with, or 0 if there is no such constant.

    For ``Less(127, Shape(x))``, this is 127. Very small and very large constants are ignored.
    """
    constants = {tensor.name: tensor for tensor in proto.graph.initializer if tensor.data_type == onnx.TensorProto.INT64}
    producers = {name: node for node, _ in all_nodes(proto) for name in node.output}

    def is_size(name: str) -> bool:
        node = producers.get(name)
        while node is not None and node.op_type in _MOVES and node.domain == "":
            node = producers.get(node.input[0])
        return node is not None and node.op_type == "Shape" and node.domain == ""

    sizes = [0]
    for node in producers.values():
        if node.op_type in _COMPARISONS and node.domain == "" and any(map(is_size, node.input)):
            numbers = [onnx.numpy_helper.to_array(constants[name]) for name in node.input if name in constants]
            sizes += [int(number.item()) for number in numbers if number.size == 1]
    return max(size for size in sizes if size == 0 or _LEAST_ASKED <= size <= _MOST_ASKED)


def derived_dims(names: Iterable[str]) -> set[str]:
    """Return those of ``names`` that are arithmetic expressions of other names, such as ``2*T``.

    A name such as ``batch-size`` only counts as an expression if ``batch`` and ``size`` are also in ``names``.
    """
    names = set(names)

    def is_derived(name: str) -> bool:
        tree = _parsed(name)
        if tree is None or isinstance(tree, ast.Name | ast.Constant):
            return False
        inner = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        return bool(inner) and inner <= names and _is_arithmetic(tree)

    return {name for name in names if is_derived(name)}


def derived_size(name: str, sizes: Mapping[str, int]) -> int:
    """Return the size of a dimension whose name is an arithmetic expression.

    ``sizes`` has the sizes of the variables in the expression. A negative result becomes 0.
    """
    tree = _parsed(name)
    return 0 if tree is None else max(0, _value(tree, sizes))


def _parsed(name: str) -> ast.expr | None:
    try:
        return ast.parse(name, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_arithmetic(tree: ast.expr) -> bool:
    match tree:
        case ast.Name() | ast.Constant(value=int()):
            return True
        case ast.BinOp(left=left, op=op, right=right):
            divides = isinstance(op, ast.FloorDiv) and not (isinstance(right, ast.Constant) and right.value)
            return type(op) in _OPERATORS and not divides and _is_arithmetic(left) and _is_arithmetic(right)
    return False


def _value(tree: ast.expr, sizes: Mapping[str, int]) -> int:
    match tree:
        case ast.Name(id=name):
            return sizes[name]
        case ast.Constant(value=int(number)):
            return number
        case ast.BinOp(left=left, op=op, right=right):
            return int(_OPERATORS[type(op)](_value(left, sizes), _value(right, sizes)))
    raise AssertionError(f"not arithmetic: {ast.dump(tree)}")
