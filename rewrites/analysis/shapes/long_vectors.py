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

__all__ = ["GROWING", "LONGEST", "Measure", "Part", "VectorStep", "Vectors", "has_long_vectors", "largest_number"]

LONGEST = 1 << 20
"""The largest number of elements of a vector that onnx may compute one by one. It needs 200 bytes for each."""
_MOST = 10**18
_READ_BYTES = 4096


GROWING = frozenset({"Concat", "ConstantOfShape", "Expand", "OneHot", "Pad", "Range", "Resize", "Tile", "Upsample"})
"""Operators whose result may be longer than their operands. In a model without them, no vector is longer than declared."""


class Measure(NamedTuple):
    """Upper bounds of a value: the length of its longest axis, and the magnitude of its largest number."""

    length: int = 1
    number: int = 1


class Part(NamedTuple):
    """A graph or a function. ``steps`` are its nodes."""

    inputs: Sequence[Hashable]
    steps: Iterable["VectorStep"]
    outputs: Sequence[Hashable]


class VectorStep(NamedTuple):
    """A node, with names or values as inputs and outputs.

    Attributes:
        operator: The name of a standard operator, or the key of a function.
        given: The bounds of the results that follow from the node's attributes.
    """

    operator: Hashable
    inputs: Sequence[Hashable]
    outputs: Sequence[Hashable]
    bodies: Sequence[Part] = ()
    given: Measure = Measure()


def has_long_vectors(graph: ir.Graph, functions: Mapping[ir.OperatorIdentifier, ir.Function] | None = None) -> bool:
    """Return True if the model may contain a vector that is too long to compute its elements one by one."""
    parts: list[ir.Graph | ir.Function] = [graph, *(functions or {}).values()]
    if not any(node.op_type in GROWING for part in parts for node in all_nodes(part)):
        return any(
            _own_length(value) > LONGEST for part in parts for node in all_nodes(part) for value in (*node.inputs, *node.outputs)
        )
    called: dict[Hashable, Part] = {key: _part(function) for key, function in (functions or {}).items()}
    return Vectors(_own_measure, called, LONGEST).too_long(_part(graph))


@dataclass
class Vectors:
    """Upper bounds of the values of a model.

    Args:
        own: Returns the bounds of a value that follow from its declared shape or its constant, without its producer.
        functions: The functions of the model, by key.
        longest: The length that no vector may exceed.
        joined_only: True to assume that only Concat and StringConcat lengthen vectors.
        known: Better bounds of some values, which replace the computed ones.
        offender: The first node found whose result may be longer than ``longest``.
    """

    own: Callable[[Hashable], Measure]
    functions: Mapping[Hashable, Part]
    longest: int
    joined_only: bool = False
    known: Mapping[Hashable, Measure] = field(default_factory=dict)
    offender: VectorStep | None = None
    _known: dict[Hashable, Measure] = field(default_factory=dict)
    _called: dict[tuple[Hashable, Measure], Measure] = field(default_factory=dict)

    def too_long(self, part: Part) -> bool:
        """Return True if a value of ``part`` or of a function may be longer than ``longest``.

        If it returns True, ``offender`` is the node that computes this value.
        """
        for each in (part, *self.functions.values()):
            self._walk(each)
        return self.offender is not None

    def _walk(self, part: Part) -> Measure:
        for step in part.steps:
            if self.offender is not None:
                break
            operands = [self._measure(value) for value in step.inputs]
            measure = self._made(step, operands)
            for value in step.outputs:
                own = self.own(value)
                largest = Measure(max(measure.length, own.length), max(measure.number, own.number))
                self._known[value] = self.known.get(value, largest)
                if self._known[value].length > self.longest:
                    self.offender = self.offender or step
        return _most([self._measure(value) for value in part.outputs])

    def _measure(self, value: Hashable) -> Measure:
        return self._known[value] if value in self._known else self.own(value)

    def _made(self, step: VectorStep, operands: Sequence[Measure]) -> Measure:
        if step.bodies:
            return _most([*operands, *[self._walk(body) for body in step.bodies]])
        if step.operator in self.functions:
            return self._call(step.operator, _most(operands))
        length, number = _grown(str(step.operator), operands, step.given, self.joined_only)
        return Measure(min(length, _MOST), min(number, _MOST))

    def _call(self, key: Hashable, largest: Measure) -> Measure:
        """Return the bounds of the results of calling the function ``key``.

        ``largest`` bounds all operands. It is rounded up to powers of two, so that calls with similar bounds share a cached result.
        """
        rounded = Measure(1 << (largest.length - 1).bit_length(), 1 << (largest.number - 1).bit_length())
        if (key, rounded) not in self._called:
            self._called[key, rounded] = rounded  # for a recursive call
            part = self.functions[key]
            self._known.update(dict.fromkeys(part.inputs, rounded))
            self._called[key, rounded] = self._walk(part)
        return self._called[key, rounded]


def _grown(operator: str, operands: Sequence[Measure], said: Measure, joined_only: bool) -> Measure:
    lengths, numbers = [operand.length for operand in operands], [operand.number for operand in operands]
    usual = Measure(max([said.length, *lengths]), max([said.number, *numbers]))
    if operator == "Concat" or (joined_only and operator == "StringConcat"):
        return Measure(sum(lengths), usual.number)
    if joined_only or not operands:
        return usual
    match operator:
        case "Shape" | "Size":
            return Measure(1, lengths[0] if operator == "Shape" else min(lengths[0], _MOST) ** 2)
        case "Add" | "Sub" | "Sum":
            return Measure(usual.length, sum(numbers))
        case "Mul" | "Pow" | "ReduceProd":
            return Measure(usual.length, math.prod(numbers) if operator == "Mul" else max(numbers) ** 4)
        case "ConstantOfShape":
            return Measure(numbers[0], said.number)
        case "Tile":
            return Measure(lengths[0] * numbers[-1], numbers[0])
        case "Range":
            return Measure(sum(numbers[:2]), sum(numbers))
        case "Expand" | "OneHot" | "Pad" | "Resize" | "Upsample":
            return Measure(
                max(lengths[0], numbers[0] if operator == "OneHot" else 1) + 2 * max(numbers[1:], default=1), usual.number
            )
    return usual


def _most(measures: Sequence[Measure]) -> Measure:
    return Measure(
        max((measure.length for measure in measures), default=1), max((measure.number for measure in measures), default=1)
    )


def largest_number(array: np.ndarray) -> int:
    """Return the largest magnitude in ``array``, but at least 1.

    Return 1 if it is infinite or not a number.
    """
    if not array.size or array.dtype.kind not in "iuf":
        return 1
    least, most = float(array.min()), float(array.max())
    largest = max(-least, most)
    return max(1, math.ceil(min(largest, _MOST))) if math.isfinite(largest) else 1


def _part(graph: ir.Graph | ir.Function) -> Part:
    return Part(graph.inputs, list(_steps(graph)), graph.outputs)


def _steps(nodes: Iterable[ir.Node]) -> Iterator[VectorStep]:
    for node in nodes:
        plain = node.domain in ("", "ai.onnx")
        bodies = [_part(graph) for graph in node_graphs(node)]
        own = Measure()
        if node.op_type == "ConstantOfShape" and (value := node.attributes.get("value")) is not None and not value.is_ref():
            own = Measure(1, largest_number(value.as_tensor().numpy()))
        yield VectorStep(node.op_type if plain else node.op_identifier(), node.inputs, node.outputs, bodies, own)


def _own_length(value: ir.Value | None) -> int:
    longest = 1
    for dim in () if value is None or value.shape is None else value.shape.dims:
        if isinstance(dim, int) and dim > longest:
            longest = dim
    return longest


def _own_measure(value: Hashable) -> Measure:
    if not isinstance(value, ir.Value):
        return Measure()
    length = _own_length(value)
    is_constant = value.is_initializer() or producer_of(value, "Constant") is not None
    array = const_array(value, limit=_READ_BYTES) if is_constant else None
    return Measure(length, 1 if array is None else largest_number(array))
