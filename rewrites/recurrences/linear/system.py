"""States that each step makes of all of them, by constant numbers, and of what comes in: ``s' = s A + u B + a, y = s C + u D + d``.

Elementwise work on states of one shape is one such system in each element, the same in all. Followed are Identity, Neg, and Add,
Sub, Mul and Div, with constants of one number; whatever else does not depend on the states is an input of the system.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import reads
from rewrites.graph.values import rank_of
from rewrites.loops import ScanOutput, ScanView, State
from rewrites.recurrences.constants import Constants

__all__ = ["Combination", "Followed", "System"]


@dataclass(frozen=True)
class Combination:
    """``numbers``: what each state or input is multiplied by, in float64; ``more``: what is added to the sum."""

    numbers: Mapping[ir.Value, float] = field(default_factory=dict)
    more: float = 0.0

    def plus(self, other: "Combination", factor: float = 1.0) -> "Combination":
        """Add ``factor`` times another."""
        numbers = dict(self.numbers)
        for source, number in other.numbers.items():
            numbers[source] = numbers.get(source, 0.0) + factor * number
        return Combination(numbers, self.more + factor * other.more)

    def times(self, factor: float) -> "Combination":
        """Multiply."""
        return Combination().plus(self, factor)


@dataclass(frozen=True)
class System:
    """``step`` [n, n], ``drive`` [m, n] and ``more`` [n] make the next states; ``seen``, ``through`` and ``offset`` the outputs.

    The first axis of a matrix is what is read, the second what is made: the elements of ``states``, ``inputs`` and ``outputs`` one
    after the other, of which each has so many. ``largest`` [n + m, ...] holds the columns of all that the body computes on the way.
    ``is_elementwise``: it is the same for each element of what may be large, and each state, input and output is one number.
    """

    states: tuple[State, ...]
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ScanOutput, ...]
    step: np.ndarray
    drive: np.ndarray
    more: np.ndarray
    seen: np.ndarray
    through: np.ndarray
    offset: np.ndarray
    largest: np.ndarray
    state_sizes: tuple[int, ...]
    input_sizes: tuple[int, ...]
    output_sizes: tuple[int, ...]
    is_elementwise: bool = False

    @property
    def kept(self) -> list[State]:
        """The states whose last values somebody wants."""
        return [one for one in self.states if one.final is not None and (one.final.uses() or one.final.is_graph_output())]


class Followed:
    """The values of the body of ``loop`` that are combinations of its states and of inputs, of which each is one at least."""

    def __init__(self, loop: ScanView, opset: int) -> None:
        self._loop, self._constants = loop, Constants(opset)
        self._rank = min((rank_of(state.inner) or 0 for state in loop.states), default=0)
        self._known: dict[ir.Value, Combination | None] = {state.inner: Combination({state.inner: 1.0}) for state in loop.states}
        self._varying = set(self._known)
        for node in loop.body:
            varies = any(value in self._varying for value in reads(node))
            if varies:
                self._varying.update(node.outputs)
            found = self._read(node)
            if not varies and found is not None and node.op_type in ("Add", "Sub") and len(found.numbers) > 1:
                found = None  # one input instead of several
            for value in node.outputs:
                self._known[value] = found if found is not None or varies else Combination({value: 1.0})

    def constant(self, value: ir.Value | None) -> np.ndarray | None:
        """Return the array that ``value`` always is, or None."""
        return None if value is None or value in self._varying else self._constants.of(value)

    def is_input(self, value: ir.Value) -> bool:
        """Whether ``value`` is taken as it is."""
        found = self.of(value)
        return found is None or value in found.numbers

    def number(self, value: ir.Value | None) -> float | None:
        """Return the number that ``value`` always is, in a shape that broadcasts to that of any state."""
        array = self.constant(value)
        if array is None or array.size != 1 or array.ndim > self._rank or array.dtype.kind != "f":
            return None
        return float(array.reshape(-1)[0])

    def of(self, value: ir.Value | None) -> Combination | None:
        """Return what ``value`` is; None where it is not linear in the states."""
        if value is None or value in self._known:
            return None if value is None else self._known[value]
        number = self.number(value)
        return Combination({value: 1.0}) if number is None else Combination(more=number)

    def system(self) -> System | None:
        """Return the whole loop as a system, or None where it is none."""
        loop = self._loop
        states = [state.inner for state in loop.states]
        made = [self.of(state.next) for state in loop.states]
        given = [self.of(output.inner) for output in loop.scan_outputs]
        found = [one for one in (*made, *given) if one is not None]
        if len(found) < len(made) + len(given):
            return None
        inputs = list(dict.fromkeys(source for one in found for source in one.numbers if source not in states))
        between = [one for one in self._known.values() if one is not None and all(s in states or s in inputs for s in one.numbers)]
        next_, output = _matrix(found[: len(made)], [*states, *inputs]), _matrix(found[len(made) :], [*states, *inputs])
        count = len(states)
        return System(
            loop.states,
            tuple(inputs),
            loop.scan_outputs,
            next_[:count],
            next_[count:],
            np.array([one.more for one in found[: len(made)]]),
            output[:count],
            output[count:],
            np.array([one.more for one in found[len(made) :]]),
            _matrix(between, [*states, *inputs]),
            (1,) * count,
            (1,) * len(inputs),
            (1,) * len(given),
            is_elementwise=True,
        )

    def _read(self, node: ir.Node) -> Combination | None:
        operands = [self.of(value) for value in node.inputs]
        if node.domain != "" or node.op_type not in ("Identity", "Neg", "Add", "Sub", "Mul", "Div") or None in operands:
            return None
        first, *others = [operand for operand in operands if operand is not None]
        if node.op_type in ("Identity", "Neg"):
            return first if node.op_type == "Identity" else first.times(-1.0)
        if node.op_type in ("Add", "Sub"):
            return first.plus(others[0], 1.0 if node.op_type == "Add" else -1.0)
        left, right = (self.number(value) for value in node.inputs)
        if node.op_type == "Mul" and (left is not None or right is not None):
            return first.times(right) if right is not None else others[0].times(left or 0.0)
        return first.times(1 / right) if node.op_type == "Div" and right else None


def _matrix(found: list[Combination], sources: list[ir.Value]) -> np.ndarray:
    """Return [sources, what is made of them]."""
    numbers = [[one.numbers.get(source, 0.0) for one in found] for source in sources]
    return np.array(numbers, np.float64).reshape(len(sources), len(found))
