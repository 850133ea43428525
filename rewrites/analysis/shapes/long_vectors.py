"""Finds vectors that are too long for onnx's inference, which would compute their elements one by one.

This runs before the inference. Such vectors may be the results of few nodes:

    Concat (v, v): twice as long      Add (Tile (u, 2**40), w): 2**40 elements of 200 bytes each      Range (0, Mul (a, a))

Upper bounds of lengths and of numbers are propagated through nodes, nested bodies and called functions. The time is proportional to
the size of the file. A number that depends only on inputs of the model counts as 1.

Works around ONNX-LONG-VECTORS.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import const_array, producer_of
from rewrites.graph.walk import all_nodes, node_graphs

__all__ = ["GROWING", "LONGEST", "Part", "SizeBounds", "VectorBounds", "VectorNode", "has_long_vectors", "largest_number"]

LONGEST = 1 << 20
"""The largest number of elements of a vector that onnx may compute one by one. It needs 200 bytes for each."""
_MOST = 10**18
_READ_BYTES = 4096


GROWING = frozenset({"Concat", "ConstantOfShape", "Expand", "OneHot", "Pad", "Range", "Resize", "Tile", "Upsample"})
"""Operators whose result may be longer than their operands. In a model without them, no vector is longer than declared."""


class SizeBounds(NamedTuple):
    """Upper bounds of a value: the length of its longest axis, and the magnitude of its largest number."""

    length: int = 1
    number: int = 1


class Part(NamedTuple):
    """A graph or a function. ``steps`` are its nodes."""

    inputs: Sequence[Hashable]
    steps: Iterable["VectorNode"]
    outputs: Sequence[Hashable]


class VectorNode(NamedTuple):
    """A node, with names or values as inputs and outputs.

    Attributes:
        operator: The name of a standard operator, or the key of a function.
        bodies: The nested graphs.
        bounds_from_attributes: The bounds of the results as far as the node's attributes determine them.
    """

    operator: Hashable
    inputs: Sequence[Hashable]
    outputs: Sequence[Hashable]
    bodies: Sequence[Part] = ()
    bounds_from_attributes: SizeBounds = SizeBounds()


def has_long_vectors(graph: ir.Graph, functions: Mapping[ir.OperatorIdentifier, ir.Function] | None = None) -> bool:
    """Return True if the model may contain a vector that is too long for onnx to compute one by one."""
    parts: list[ir.Graph | ir.Function] = [graph, *(functions or {}).values()]
    if not any(node.op_type in GROWING for part in parts for node in all_nodes(part)):
        return any(
            _declared_length(value) > LONGEST
            for part in parts
            for node in all_nodes(part)
            for value in (*node.inputs, *node.outputs)
        )
    called: dict[Hashable, Part] = {key: _part(function) for key, function in (functions or {}).items()}
    return VectorBounds(_declared_bounds, called, LONGEST).too_long(_part(graph))


@dataclass
class VectorBounds:
    """Upper bounds of the values of a model.

    Args:
        declared_bounds: Returns the bounds of a value that follow from its declared shape or its constant, without its producer.
        functions: The functions of the model, by key.
        longest: The length that no vector may exceed.
        only_concat_lengthens: True to assume that only Concat and StringConcat lengthen vectors.
        better_bounds: Bounds of some values that replace the computed ones.
        offender: The first node found whose result may be longer than ``longest``.
    """

    declared_bounds: Callable[[Hashable], SizeBounds]
    functions: Mapping[Hashable, Part]
    longest: int
    only_concat_lengthens: bool = False
    better_bounds: Mapping[Hashable, SizeBounds] = field(default_factory=dict)
    offender: VectorNode | None = None
    _known: dict[Hashable, SizeBounds] = field(default_factory=dict)
    _called: dict[tuple[Hashable, SizeBounds], SizeBounds] = field(default_factory=dict)

    def too_long(self, part: Part) -> bool:
        """Return True if a value of ``part`` or of a function may be longer than ``longest``.

        If it returns True, ``offender`` is the node that computes this value.
        """
        for part_or_function in (part, *self.functions.values()):
            self._walk(part_or_function)
        return self.offender is not None

    def _walk(self, part: Part) -> SizeBounds:
        for step in part.steps:
            if self.offender is not None:
                break
            operands = [self._bounds_of(value) for value in step.inputs]
            bounds = self._result_bounds(step, operands)
            for value in step.outputs:
                declared = self.declared_bounds(value)
                largest = SizeBounds(max(bounds.length, declared.length), max(bounds.number, declared.number))
                self._known[value] = self.better_bounds.get(value, largest)
                if self._known[value].length > self.longest:
                    self.offender = self.offender or step
        return _elementwise_max([self._bounds_of(value) for value in part.outputs])

    def _bounds_of(self, value: Hashable) -> SizeBounds:
        return self._known[value] if value in self._known else self.declared_bounds(value)

    def _result_bounds(self, step: VectorNode, operands: Sequence[SizeBounds]) -> SizeBounds:
        if step.bodies:
            return _elementwise_max([*operands, *[self._walk(body) for body in step.bodies]])
        if step.operator in self.functions:
            return self._call(step.operator, _elementwise_max(operands))
        length, number = _operator_bounds(str(step.operator), operands, step.bounds_from_attributes, self.only_concat_lengthens)
        return SizeBounds(min(length, _MOST), min(number, _MOST))

    def _call(self, key: Hashable, largest: SizeBounds) -> SizeBounds:
        """Return the bounds of the results of calling the function ``key``.

        ``largest``: bounds that hold for all operands. They are rounded up to powers of two, so that calls with similar bounds
        share a cached result.
        """
        rounded = SizeBounds(1 << (largest.length - 1).bit_length(), 1 << (largest.number - 1).bit_length())
        if (key, rounded) not in self._called:
            self._called[key, rounded] = rounded  # for a recursive call
            part = self.functions[key]
            self._known.update(dict.fromkeys(part.inputs, rounded))
            self._called[key, rounded] = self._walk(part)
        return self._called[key, rounded]


def _operator_bounds(operator: str, operands: Sequence[SizeBounds], from_attributes: SizeBounds, joined_only: bool) -> SizeBounds:
    lengths, numbers = [operand.length for operand in operands], [operand.number for operand in operands]
    no_growth = SizeBounds(max([from_attributes.length, *lengths]), max([from_attributes.number, *numbers]))
    if operator == "Concat" or (joined_only and operator == "StringConcat"):
        return SizeBounds(sum(lengths), no_growth.number)
    if joined_only or not operands:
        return no_growth
    match operator:
        case "Shape" | "Size":
            return SizeBounds(1, lengths[0] if operator == "Shape" else min(lengths[0], _MOST) ** 2)
        case "Add" | "Sub" | "Sum":
            return SizeBounds(no_growth.length, sum(numbers))
        case "Mul" | "Pow" | "ReduceProd":
            return SizeBounds(no_growth.length, math.prod(numbers) if operator == "Mul" else max(numbers) ** 4)
        case "ConstantOfShape":
            return SizeBounds(numbers[0], from_attributes.number)
        case "Tile":
            return SizeBounds(lengths[0] * numbers[-1], numbers[0])
        case "Range":
            return SizeBounds(sum(numbers[:2]), sum(numbers))
        case "Expand" | "OneHot" | "Pad" | "Resize" | "Upsample":
            return SizeBounds(
                max(lengths[0], numbers[0] if operator == "OneHot" else 1) + 2 * max(numbers[1:], default=1), no_growth.number
            )
    return no_growth


def _elementwise_max(bounds: Sequence[SizeBounds]) -> SizeBounds:
    return SizeBounds(max((bound.length for bound in bounds), default=1), max((bound.number for bound in bounds), default=1))


def largest_number(array: np.ndarray) -> int:
    """Return the largest magnitude in ``array``, but at least 1.

    If an element is infinite or not a number, return 1.
    """
    if not array.size or array.dtype.kind not in "iuf":
        return 1
    least, most = float(array.min()), float(array.max())
    largest = max(-least, most)
    return max(1, math.ceil(min(largest, _MOST))) if math.isfinite(largest) else 1


def _part(graph: ir.Graph | ir.Function) -> Part:
    return Part(graph.inputs, list(_steps(graph)), graph.outputs)


def _steps(nodes: Iterable[ir.Node]) -> Iterator[VectorNode]:
    for node in nodes:
        plain = node.domain in ("", "ai.onnx")
        bodies = [_part(graph) for graph in node_graphs(node)]
        own = SizeBounds()
        if node.op_type == "ConstantOfShape" and (value := node.attributes.get("value")) is not None and not value.is_ref():
            own = SizeBounds(1, largest_number(value.as_tensor().numpy()))
        yield VectorNode(node.op_type if plain else node.op_identifier(), node.inputs, node.outputs, bodies, own)


def _declared_length(value: ir.Value | None) -> int:
    longest = 1
    for dim in () if value is None or value.shape is None else value.shape.dims:
        if isinstance(dim, int) and dim > longest:
            longest = dim
    return longest


def _declared_bounds(value: Hashable) -> SizeBounds:
    if not isinstance(value, ir.Value):
        return SizeBounds()
    length = _declared_length(value)
    is_constant = value.is_initializer() or producer_of(value, "Constant") is not None
    array = const_array(value, limit=_READ_BYTES) if is_constant else None
    return SizeBounds(length, 1 if array is None else largest_number(array))
