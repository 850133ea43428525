"""Reads the next value of a state as decay times state, plus what does not depend on the states.

The reader follows Identity, Neg, Add, Sub, Mul and Div, with any broadcasting. The drive does not depend on the states. It stays an
expression of the body's own operators, so that it is computed as in the loop.

A body may reach a state on exponentially many ways: each of ``a = Add(h, h)  b = Add(a, a)  ...`` doubles them. So ways with the
same factors are one path, and a drive that is read twice is one object. Paths with more than ``_MOST`` factors in all are refused.
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
    """The value is not linear in the states, or not in a supported way, which is ``reason``."""

    def __init__(self, reason: NotApplicable | None = None) -> None:
        super().__init__()
        self.reason = reason


@dataclass(frozen=True, eq=False)
class Drive:
    """The result of ``node`` for ``operands``: other drives and body values, one for each input; None has no drive.

    Drives compare by identity: several may share one, so that comparing them by their operands would take exponential time.
    """

    node: ir.Node
    operands: "tuple[Drive | ir.Value | None, ...]"


@dataclass(frozen=True)
class StepFactor:
    """A factor that changes from step to step, or a divisor if it ``divides``."""

    value: ir.Value
    divides: bool


@dataclass(frozen=True)
class Path:
    """The ways that ``state`` comes in multiplied by ``factors``: the sum of their other factors, in float64, is ``numbers``.

    ``is_sum``: the body adds up several such ways.
    """

    state: State
    numbers: np.ndarray
    factors: tuple[StepFactor, ...] = ()
    is_sum: bool = False


@dataclass(frozen=True)
class Linear:
    """``paths``: how states come in; the sum of those of one state is its decay.

    ``drive``: the rest of the sum, or None.
    """

    paths: tuple[Path, ...]
    drive: Drive | ir.Value | None

    def through(self, factor: np.ndarray | float | StepFactor, drive: Drive | ir.Value | None) -> "Linear":
        """Return this times ``factor``, with another drive."""
        if isinstance(factor, StepFactor):
            paths = [replace(path, factors=(*path.factors, factor)) for path in self.paths]
        else:
            paths = [replace(path, numbers=path.numbers * factor) for path in self.paths]
        return Linear(_bounded(paths), drive)

    def plus(self, other: "Linear", drive: Drive | ir.Value | None) -> "Linear":
        """Return the sum of both, with another drive; ways with the same factors become one path."""
        paths = {(path.state, path.factors): path for path in self.paths}
        for path in other.paths:
            key = (path.state, path.factors)
            mine = paths.get(key)
            paths[key] = path if mine is None else replace(mine, numbers=mine.numbers + path.numbers, is_sum=True)
        return Linear(_bounded(list(paths.values())), drive)


class DecayReader:
    """Reads values of the body of ``loop``; ``opset`` is the model's."""

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
        """Return the array that ``value`` always is, or None."""
        return self._constants.of(value) if self.is_free(value) else None

    def linear(self, value: ir.Value) -> Linear:
        """Return what ``value`` is; raises NotLinear."""
        result = self._known[value] if value in self._known else Linear((), value)
        if isinstance(result, NotLinear):
            raise result
        return result

    def own(self, state: State) -> Linear:
        """Return the next value of ``state``, which depends on no other state and has a drive; raises NotLinear."""
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
    """Return what ``read`` returns for each state of ``loop``, whose scan outputs must be states; ``read`` may raise NotLinear."""
    try:
        reader = DecayReader(loop, opset)
        states = [read(state, reader) for state in loop.states]
    except NotLinear as refusal:
        return refusal.reason or NOTHING_HERE
    return states if gives_states_alone(loop) else NOTHING_HERE


def drives_in_order(drive: Drive | ir.Value) -> list[Drive | ir.Value]:
    """Return ``drive`` and all that it is computed from, each once and after its operands."""

    def operands(part: Drive | ir.Value) -> list[Drive | ir.Value]:
        return [operand for operand in part.operands if operand is not None] if isinstance(part, Drive) else []

    return postorder([drive], operands)


def gives_states_alone(loop: ScanView) -> bool:
    """Return True if all scan outputs are states, before or after each step."""
    parts = {part for state in loop.states for part in (state.inner, through_identity(state.next))}
    return all(through_identity(output.inner) in parts for output in loop.scan_outputs)


def _bounded(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return ``paths``; raises NotLinear if they are too many, or a number of theirs is not finite."""
    if any(not np.isfinite(path.numbers).all() for path in paths):
        raise NotLinear
    if sum(1 + len(path.factors) for path in paths) > _MOST:
        detail = f"'{paths[0].state.inner.name}' is multiplied by a sum of products with more than {_MOST} factors in all"
        raise NotLinear(NotApplicable("LINEAR-DECAY", detail))
    return tuple(paths)


def _driven(node: ir.Node, drives: Iterable[Drive | ir.Value | None]) -> Drive | None:
    operands = tuple(drives)
    return None if all(operand is None for operand in operands) else Drive(node, operands)
