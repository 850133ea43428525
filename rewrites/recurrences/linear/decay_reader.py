"""Read the next value of a state as ``decay * state + drive``.

Decay and drive do not depend on the states. For ``s' = 0.5 * (s + x)``, the decay is 0.5 and the drive is ``0.5 * x``. The reader
follows Identity, Neg, Add, Sub, Mul and Div, with any broadcasting. The drive keeps the operators of the body, so that it is
computed as in the loop.

A path is a way from the next value through the body to the state. A body may have exponentially many paths: each Add of
``a = Add(h, h)  b = Add(a, a)  ...`` doubles their number. So paths with the same factors are merged, and a drive that is read
twice is one object. If all paths together have more than ``_MOST`` factors, the body is refused.
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
    """Raised if a value is not linear in the states, or is linear in an unsupported form.

    ``reason``: An explanation of the unsupported form for reports, or None.
    """

    def __init__(self, reason: NotApplicable | None = None) -> None:
        super().__init__()
        self.reason = reason


@dataclass(frozen=True, eq=False)
class Drive:
    """The part of a node's result that does not depend on the states.

    Drives compare by identity. A comparison by content would take exponential time, because drives share operands.

    Args:
        node: A node of the body whose result depends on a state.
        operands: For each input of the node, the part of this input that does not depend on the states; None if there is none.
    """

    node: ir.Node
    operands: "tuple[Drive | ir.Value | None, ...]"


@dataclass(frozen=True)
class StepFactor:
    """A factor that changes from step to step. If ``divides``, it is a divisor."""

    value: ir.Value
    divides: bool


@dataclass(frozen=True)
class Path:
    """A summand of the form ``state * numbers * factors``.

    Args:
        numbers: A constant in float64.
        factors: The factors that change from step to step.
        is_sum: True if this path replaces several summands of the body that have the same ``state`` and ``factors``. In this
            case, ``numbers`` is the sum of their constants.
    """

    state: State
    numbers: np.ndarray
    factors: tuple[StepFactor, ...] = ()
    is_sum: bool = False


@dataclass(frozen=True)
class Linear:
    """A body value, written as the sum of ``paths`` and ``drive``.

    Args:
        paths: The summands that contain a state. The decay of the state is their sum divided by the state.
        drive: The sum of the summands without a state; None if there are none.
    """

    paths: tuple[Path, ...]
    drive: Drive | ir.Value | None

    def scaled(self, factor: np.ndarray | float | StepFactor, drive: Drive | ir.Value | None) -> "Linear":
        """Return a copy with all paths multiplied by ``factor`` and with the given ``drive``."""
        if isinstance(factor, StepFactor):
            paths = [replace(path, factors=(*path.factors, factor)) for path in self.paths]
        else:
            paths = [replace(path, numbers=path.numbers * factor) for path in self.paths]
        return Linear(_bounded(paths), drive)

    def plus(self, other: "Linear", drive: Drive | ir.Value | None) -> "Linear":
        """Return the sum of the paths of ``self`` and ``other``, with the given ``drive``.

        Paths with the same state and factors are merged.
        """
        paths = {(path.state, path.factors): path for path in self.paths}
        for path in other.paths:
            key = (path.state, path.factors)
            mine = paths.get(key)
            paths[key] = path if mine is None else replace(mine, numbers=mine.numbers + path.numbers, is_sum=True)
        return Linear(_bounded(list(paths.values())), drive)


class DecayReader:
    """Reads values in the body of ``loop`` as linear functions of the states (see ``Linear``).

    ``opset``: the opset of the model.
    """

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
        """Return ``value`` as a sum of paths and a drive. Raise NotLinear if this is impossible."""
        result = self._known[value] if value in self._known else Linear((), value)
        if isinstance(result, NotLinear):
            raise result
        return result

    def next_value_of(self, state: State) -> Linear:
        """Return the next value of ``state`` as a sum of paths and a drive.

        Raise NotLinear if the next value depends on another state.
        """
        linear = self.linear(state.next)
        if not linear.paths or any(path.state is not state for path in linear.paths):
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
            return first.scaled(-1.0, _driven(node, [first.drive]))
        if node.op_type in ("Add", "Sub"):
            second = self.linear(inputs[1])
            other = second if node.op_type == "Add" else second.scaled(-1.0, second.drive)
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
        return linear.scaled(by, None if linear.drive is None else Drive(node, operands))


def read_states(loop: ScanView, opset: int, read: Callable[[State, DecayReader], S]) -> list[S] | NotApplicable:
    """Call ``read`` for each state of ``loop`` and return the results.

    Return a reason instead if ``read`` raises NotLinear, or if a scan output is not the value of a state.
    """
    try:
        reader = DecayReader(loop, opset)
        states = [read(state, reader) for state in loop.states]
    except NotLinear as refusal:
        return refusal.reason or NOTHING_HERE
    return states if gives_states_alone(loop) else NOTHING_HERE


def drives_in_order(drive: Drive | ir.Value) -> list[Drive | ir.Value]:
    """Return ``drive`` and all drives and values that it depends on, operands first, without duplicates."""

    def operands(part: Drive | ir.Value) -> list[Drive | ir.Value]:
        return [operand for operand in part.operands if operand is not None] if isinstance(part, Drive) else []

    return postorder([drive], operands)


def gives_states_alone(loop: ScanView) -> bool:
    """Return True if every scan output is the value of a state before or after the step."""
    parts = {part for state in loop.states for part in (state.inner, through_identity(state.next))}
    return all(through_identity(output.inner) in parts for output in loop.scan_outputs)


def _bounded(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return ``paths`` unchanged after checking them.

    Raise NotLinear if all paths together have too many factors, or if a number in a path is not finite.
    """
    if any(not np.isfinite(path.numbers).all() for path in paths):
        raise NotLinear
    if sum(1 + len(path.factors) for path in paths) > _MOST:
        detail = f"'{paths[0].state.inner.name}' is multiplied by a sum of products with more than {_MOST} factors in all"
        raise NotLinear(NotApplicable("LINEAR-DECAY", detail))
    return tuple(paths)


def _driven(node: ir.Node, drives: Iterable[Drive | ir.Value | None]) -> Drive | None:
    operands = tuple(drives)
    return None if all(operand is None for operand in operands) else Drive(node, operands)
