"""Find running log-sum-exps, ``s' = log(exp(s) + exp(x))``, however the loop body writes this formula.

This module evaluates the step with numpy at many points, and compares the results with ``np.logaddexp``. The first evaluation, in
double precision, shows whether the step computes a log-sum-exp. The second evaluation, in the type of the state, shows for which
numbers the step does not overflow. Steps with constants other than 0 and 1 are refused. So are steps with operators that might
behave differently between the evaluated points.

Works around ORT-LOG-SUM-EXP-28.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import varying_values
from rewrites.base import since
from rewrites.graph.values import rank_of, through_identity
from rewrites.loops import ScanView, State
from rewrites.ops.versions import axes_of, keepdims
from rewrites.recurrences.constants import NUMPY, ConstantReader

__all__ = ["LogSum", "log_sums"]

_NEAR = {4: 32.0, 8: 300.0}
_REACH, _FAR = 64.0, 1e30
_MOST_NODES = 16


@dataclass(frozen=True)
class LogSum:
    """A state that is the running log-sum-exp of ``operand``.

    Args:
        nodes: The nodes that compute the next value.
        is_power: True if the step adds ``operand`` instead of its exponential: ``s' = log(exp(s) + operand)``.
        largest: The step does not overflow if ``abs(max(state, operand)) < largest``.
        reach: The step does not overflow if ``operand - state < reach``. If ``reach`` is infinite, the state may even be -inf.
        extra: An axis of size 1 that the operand has and the state lacks; None if there is none.
    """

    state: State
    operand: ir.Value
    nodes: tuple[ir.Node, ...]
    is_power: bool = False
    largest: float = np.inf
    reach: float = np.inf
    extra: int | None = None


def log_sums(loop: ScanView, opset: int) -> Iterator[LogSum]:
    """Find the states of ``loop`` that are running log-sum-exps in float or double."""
    varying = varying_values(loop.body, [state.inner for state in loop.states])
    for state in loop.states:
        if state.inner.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE) and rank_of(state.inner) is not None:
            match = _match_reduction(state, varying, opset) or _match_elementwise(state, varying, opset)
            if match is not None:
                yield match


def _match_reduction(state: State, varying: set[ir.Value], opset: int) -> LogSum | None:
    """Match a ReduceLogSumExp over a Concat of the state and its operand along a new axis.

    Return None if the nodes differ, or if onnxruntime's ReduceLogSumExp overflows in ``opset``.
    """
    node = None if opset >= since.PLAIN_LOG_SUM_EXP else _producer(state.next)
    joined = None if node is None or node.op_type != "ReduceLogSumExp" or keepdims(node) else _producer(node.inputs[0])
    rank = rank_of(state.inner)
    if node is None or joined is None or rank is None or joined.op_type != "Concat" or len(joined.inputs) != 2:
        return None
    at = joined.attributes.get_int("axis", 0) % (rank + 1)
    if axes_of(node, opset, rank + 1) != (at,):
        return None
    own = [index for index, value in enumerate(joined.inputs) if _unsqueezed(value, at, rank + 1, opset) is state.inner]
    operand = joined.inputs[1 - own[0]] if len(own) == 1 else None
    if operand is None or operand in varying or rank_of(operand) != rank + 1:
        return None
    lifted = _producer(joined.inputs[own[0]])
    assert lifted is not None
    inner = _unsqueezed(operand, at, rank + 1, opset)
    if inner is None and (operand.shape is None or operand.shape[at] != 1):
        return None
    return LogSum(state, inner or operand, (node, joined, lifted), extra=None if inner is not None else at)


def _unsqueezed(value: ir.Value | None, axis: int, rank: int, opset: int) -> ir.Value | None:
    """Return the input of the Unsqueeze that computes ``value`` by inserting ``axis``, else None.

    ``rank``: the rank of ``value``.
    """
    node = _producer(value)
    if node is None or node.op_type != "Unsqueeze" or axes_of(node, opset, rank - 1) not in ((axis,), (axis - rank,)):
        return None
    return through_identity(node.inputs[0])


def _producer(value: ir.Value | None) -> ir.Node | None:
    value = None if value is None else through_identity(value)
    node = None if value is None else value.producer()
    return node if node is not None and node.domain == "" else None


def _match_elementwise(state: State, varying: set[ir.Value], opset: int) -> LogSum | None:
    """Match elementwise nodes that compute the log-sum-exp of the state and one other value.

    Return None if nothing matches.
    """
    assert state.inner.dtype is not None
    step = _Step(state, varying, ConstantReader(opset))
    if not step.is_followed or len(step.leaves) != 1 or rank_of(step.leaves[0]) is None:
        return None
    dtype = np.dtype(state.inner.dtype.numpy())
    near = 2 * _NEAR[dtype.itemsize]
    for is_power in (False, True):
        if not step.agrees(_points(20.0, 20.0, 20.0), np.dtype(np.float64), 1e-10, is_power):
            continue
        for reach in (np.inf, _REACH):
            if step.agrees(_points(near, _FAR, reach), dtype, 1e-3, is_power):
                sizes = () if is_power else (np.inf, _FAR)
                safe = (size for size in sizes if step.agrees(_points(min(size, 1e38), _FAR, reach), dtype, 1e-3, is_power))
                largest = next(safe, _NEAR[dtype.itemsize])
                return LogSum(state, step.leaves[0], tuple(step.nodes), is_power, largest, reach)
    return None


def _points(largest: float, below: float, reach: float) -> list[tuple[float, float]]:
    """Return pairs (state, operand) of numbers at which the step is evaluated.

    Args:
        largest: The larger number of a pair has at most this magnitude.
        below: The two numbers of a pair differ at most by ``below``.
        reach: If the state is the smaller number, the two numbers also differ at most by ``reach``. If ``reach`` is infinite, their
            difference has no limit at all, and the smaller number of some pairs is -inf.
    """
    draw = np.random.default_rng(0)
    some = [*draw.uniform(-largest, largest, 40), *(largest * share for share in (-1, -1e-3, 0, 1e-3, 0.3, 1))]
    gaps = [0.0, 1e-3, 0.1, 1.0, 3.0, 10.0, 30.0, 60.0, 1e4, below, np.inf]
    rising = [(top, top - gap) for top, gap in itertools.product(some, gaps) if gap <= below or np.isinf(reach)]
    return [
        *rising,
        *((top - gap, top) for top, gap in itertools.product(some, gaps) if gap <= min(below, reach) or np.isinf(reach)),
    ]


_OPERATORS: Mapping[str, Callable[..., np.ndarray]] = {
    **{name: NUMPY[name] for name in ("Abs", "Add", "Exp", "IsNaN", "Log", "Max", "Neg", "Sub")},
    "Identity": lambda x: x,
    "Softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "Where": np.where,
}


class _Step:
    """The nodes that compute the next value of ``state``, and the other values that they read."""

    def __init__(self, state: State, varying: set[ir.Value], constants: ConstantReader) -> None:
        self._state, self._varying, self._constants = state, varying, constants
        self.nodes, self.leaves = list[ir.Node](), list[ir.Value]()
        self.is_followed = state.next in varying and self._follow(state.next)

    def _follow(self, value: ir.Value | None) -> bool:
        if value is None:
            return False
        if value is self._state.inner or value in self.leaves:
            return True
        node = value.producer()
        if value not in self._varying:
            number = self._constants.of(value)
            if number is None:
                self.leaves.append(value)
            return number is None or (number.size == 1 and number.reshape(-1)[0] in (0, 1))
        if node is None or node.domain != "" or node.op_type not in _OPERATORS or len(self.nodes) > _MOST_NODES:
            return False
        if node in self.nodes:
            return True
        self.nodes.append(node)
        known = {"Max": 2, "Where": 3}.get(node.op_type, len(node.inputs))
        asked = _producer(node.inputs[0]) if node.op_type == "Where" else None
        fits = len(node.inputs) == known and (node.op_type != "Where" or (asked is not None and asked.op_type == "IsNaN"))
        return fits and all(self._follow(operand) for operand in node.inputs)

    def agrees(self, points: list[tuple[float, float]], dtype: np.dtype, tolerance: float, is_power: bool) -> bool:
        """Return True if the step equals the log-sum-exp within ``tolerance`` at all ``points``.

        Args:
            points: Pairs (s, x) of numbers. The result should be log(exp(s) + exp(x)).
            dtype: The type in which the step is evaluated.
            tolerance: The largest error, relative to 1 plus the magnitude of the result.
            is_power: True if the operand of the step is exp(x) instead of x.
        """
        s, x = (np.array(numbers, dtype) for numbers in zip(*points, strict=True))
        with np.errstate(all="ignore"):
            values = {self._state.inner: s, self.leaves[0]: np.exp(x) if is_power else x}
            match, wanted = (
                self._value(self._state.next, values, dtype),
                np.logaddexp(s.astype(np.float64), x.astype(np.float64)),
            )
            close = np.abs(match - wanted) <= tolerance * (1 + np.abs(wanted))
        return bool(close.all())

    def _value(self, value: ir.Value | None, values: dict[ir.Value, np.ndarray], dtype: np.dtype) -> np.ndarray:
        assert value is not None
        if value not in values:
            number, node = None if value in self._varying else self._constants.of(value), value.producer()
            if number is not None:
                values[value] = number.reshape(-1)[0].astype(dtype)
            else:
                assert node is not None
                values[value] = _OPERATORS[node.op_type](*(self._value(operand, values, dtype) for operand in node.inputs))
        return values[value]
