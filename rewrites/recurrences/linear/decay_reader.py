"""Read the next value of a state as decay times state, plus a drive that does not depend on the states.

The reader follows Identity, Neg, Add, Sub, Mul and Div, with any broadcasting. The drive stays an expression of the body's own
operators, so that it is computed as in the loop.

A body may have exponentially many paths to a state: each Add of ``a = Add(h, h)  b = Add(a, a)  ...`` doubles their number. So
paths with the same factors are merged, and a drive that is read twice is one object. Bodies with more than ``_MOST`` factors are
refused.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import reads
from rewrites.base.not_applicable import NOTHING_HERE, NotApplicable
from rewrites.base.postorder import postorder
from rewrites.graph.values import through_identity
from rewrites.loops import ScanView, State
from rewrites.recurrences.constants import ConstantReader

__all__ = [
    "DecayReader",
    "Drive",
    "Linear",
    "NotLinear",
    "Path",
    "StepFactor",
    "drives_in_order",
    "gives_states_alone",
    "read_states",
]

_MOST = 128
S = TypeVar("S")


class NotLinear(Exception):
    """The value is not linear in the states, or not in a supported form.

    In the second case ``reason`` explains why.
    """

    def __init__(self, reason: NotApplicable | None = None) -> None:
        super().__init__()
        self.reason = reason


@dataclass(frozen=True, eq=False)
class Drive:
    """The result of ``node`` for ``operands``, one drive or body value for each input; None if an input has no drive.

    Drives compare by identity. Because drives share operands, a comparison of operands would take exponential time.
    """

    node: ir.Node
    operands: "tuple[Drive | ir.Value | None, ...]"


@dataclass(frozen=True)
class StepFactor:
    """A factor, or a divisor if ``divides``, that changes from step to step."""

    value: ir.Value
    divides: bool


@dataclass(frozen=True)
class Path:
    """A summand of the form ``state * numbers * factors``. ``numbers``: a constant in float64.

    ``is_sum``: the body adds up several such summands with the same ``factors``; ``numbers`` is the sum of their constants.
    """

    state: State
    numbers: np.ndarray
    factors: tuple[StepFactor, ...] = ()
    is_sum: bool = False


@dataclass(frozen=True)
class Linear:
    """A value that is a sum of ``paths``, the summands with a state, and ``drive``, the rest of the sum or None.

    The factors of all paths with the same state add up to the decay of that state.
    """

    paths: tuple[Path, ...]
    drive: Drive | ir.Value | None

    def through(self, factor: np.ndarray | float | StepFactor, drive: Drive | ir.Value | None) -> "Linear":
        """Multiply all paths by ``factor``, and replace the drive by ``drive``."""
        if isinstance(factor, StepFactor):
            paths = [replace(path, factors=(*path.factors, factor)) for path in self.paths]
        else:
            paths = [replace(path, numbers=path.numbers * factor) for path in self.paths]
        return Linear(_bounded(paths), drive)

    def plus(self, other: "Linear", drive: Drive | ir.Value | None) -> "Linear":
        """Add the paths of both, and replace the drive by ``drive``. Paths with the same factors are merged."""
        paths = {(path.state, path.factors): path for path in self.paths}
        for path in other.paths:
            key = (path.state, path.factors)
            mine = paths.get(key)
            paths[key] = path if mine is None else replace(mine, numbers=mine.numbers + path.numbers, is_sum=True)
        return Linear(_bounded(list(paths.values())), drive)


class DecayReader:
    """Reads body values of ``loop`` as linear in the states. ``opset`` is the opset of the model."""

    def __init__(self, loop: ScanView, opset: int) -> None:
        self._constants = ConstantReader(opset)
        self._known: dict[ir.Value, Linear | NotLinear] = {
            state.inner: Linear((Path(state, np.array(1.0)),), None) for state in loop.states
        }
        for node in loop.body:
            if any(value in self._known for value in reads(node)):
                try:
                    result: Linear | NotLinear = self._read(node)
                except NotLinear as refusal:
                    result = refusal
                self._known.update(dict.fromkeys(node.outputs, result))

    def is_free(self, value: ir.Value) -> bool:
        """Return True if ``value`` does not depend on the states."""
        return value not in self._known

    def constant(self, value: ir.Value) -> np.ndarray | None:
        """Return the array of ``value`` if it is constant, else None."""
        return self._constants.of(value) if self.is_free(value) else None

    def linear(self, value: ir.Value) -> Linear:
        """Return ``value`` as a sum of paths and a drive. Raise NotLinear if it is no such sum."""
        result = self._known[value] if value in self._known else Linear((), value)
        if isinstance(result, NotLinear):
            raise result
        return result

    def own(self, state: State) -> Linear:
        """Return the next value of ``state``. Raise NotLinear if it depends on another state or has no drive."""
        linear = self.linear(state.next)
        if linear.drive is None or not linear.paths or any(path.state is not state for path in linear.paths):
            raise NotLinear
        return linear

    def _read(self, node: ir.Node) -> Linear:
        inputs = [value for value in node.inputs if value is not None]
        if node.domain != "" or node.op_type not in ("Identity", "Neg", "Add", "Sub", "Mul", "Div"):
            raise NotLinear
        if any(isinstance(result, NotLinear) and result.reason is None for result in map(self._known.get, inputs)):
            raise NotLinear
        first = self.linear(inputs[0])
        if node.op_type == "Identity":
            return first
        if node.op_type == "Neg":
            return first.through(-1.0, _driven(node, [first.drive]))
        if node.op_type in ("Add", "Sub"):
            second = self.linear(inputs[1])
            other = second if node.op_type == "Add" else second.through(-1.0, second.drive)
            return first.plus(other, _driven(node, [first.drive, second.drive]))
        return self._multiplied(node, inputs[0], inputs[1])

    def _multiplied(self, node: ir.Node, left: ir.Value, right: ir.Value) -> Linear:
        swapped = self.is_free(left)
        value, factor = (right, left) if swapped else (left, right)
        if not self.is_free(factor) or (swapped and node.op_type == "Div"):
            raise NotLinear
        linear, numbers = self.linear(value), self._constants.of(factor)
        if numbers is not None and numbers.dtype.kind != "f":
            raise NotLinear
        by: np.ndarray | StepFactor = StepFactor(factor, node.op_type == "Div")
        if numbers is not None:
            with np.errstate(all="ignore"):
                by = numbers.astype(np.float64) if node.op_type == "Mul" else 1 / numbers.astype(np.float64)
        operands = (factor, linear.drive) if swapped else (linear.drive, factor)
        return linear.through(by, None if linear.drive is None else Drive(node, operands))


def read_states(loop: ScanView, opset: int, read: Callable[[State, DecayReader], S]) -> list[S] | NotApplicable:
    """Apply ``read`` to each state of ``loop``.

    Return a reason if it raises NotLinear, or if a scan output is not a state.
    """
    try:
        reader = DecayReader(loop, opset)
        states = [read(state, reader) for state in loop.states]
    except NotLinear as refusal:
        return refusal.reason or NOTHING_HERE
    return states if gives_states_alone(loop) else NOTHING_HERE


def drives_in_order(drive: Drive | ir.Value) -> list[Drive | ir.Value]:
    """Return ``drive`` and everything it is computed from, operands first and without duplicates."""

    def operands(part: Drive | ir.Value) -> list[Drive | ir.Value]:
        return [operand for operand in part.operands if operand is not None] if isinstance(part, Drive) else []

    return postorder([drive], operands)


def gives_states_alone(loop: ScanView) -> bool:
    """Return True if every scan output is the value of a state before or after the step."""
    parts = {part for state in loop.states for part in (state.inner, through_identity(state.next))}
    return all(through_identity(output.inner) in parts for output in loop.scan_outputs)


def _bounded(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return ``paths``. Raise NotLinear if they have too many factors, or a number that is not finite."""
    if any(not np.isfinite(path.numbers).all() for path in paths):
        raise NotLinear
    if sum(1 + len(path.factors) for path in paths) > _MOST:
        detail = f"'{paths[0].state.inner.name}' is multiplied by a sum of products with more than {_MOST} factors in all"
        raise NotLinear(NotApplicable("LINEAR-DECAY", detail))
    return tuple(paths)


def _driven(node: ir.Node, drives: Iterable[Drive | ir.Value | None]) -> Drive | None:
    operands = tuple(drives)
    return None if all(operand is None for operand in operands) else Drive(node, operands)
