"""Find states that are running means, whatever operators the step uses.

An example is ``m' = m + (x - m) / (t + 1)``. Step n multiplies such a state by ``(n - 1) / n`` and adds ``x / n``. So n times the
state is a running sum. The reader does not compare operators. It evaluates the factors of m and x, and compares numbers:

* If a constant lists a number for each step of the loop, it compares all steps in floating point.
* Otherwise both factors are quotients of polynomials in n. It compares exact fractions for ``_SAMPLES`` steps. Two different
  quotients of such low degrees agree in fewer steps, so quotients that agree in all these steps are equal.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import varying_values
from rewrites.graph.values import through_identity
from rewrites.loops import ScanView, State
from rewrites.recurrences.cumulative.accumulation import Accumulation
from rewrites.recurrences.cumulative.step_numbers import Numbers, StepNumbers, combined

__all__ = ["Average", "averages"]

_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})
_MOST_NODES = 8
_SAMPLES = 64
"""More than twice the largest degree in n that ``_MOST_NODES`` nodes can compute."""
_EXACT_TO = 1 << 24


@dataclass(frozen=True)
class Average(Accumulation):
    """A state that is a running mean.

    Args:
        weight: The number of values whose mean is the initial state.
        sums: True if the loop itself computes the sum before the mean. This sum may overflow even if the mean does not.
        exact_to: The number at which the loop's count of steps stops. The state is no mean in later steps. None for no limit.
    """

    weight: float = 0.0
    sums: bool = False
    exact_to: int | None = None


def averages(loop: ScanView, opset: int) -> Iterator[Average]:
    """Find the states of ``loop`` that are running means."""
    candidates = [(state, node) for state in loop.states if state.inner.dtype in _FLOATS and (node := _last(state, loop))]
    if not candidates:
        return
    numbers, varying = StepNumbers(loop, opset), varying_values(loop.body, [state.inner for state in loop.states])
    for state, node in candidates:
        reader = _TermReader(loop, state, varying, numbers)
        terms = reader.terms(node.outputs[0])
        if terms is None or len(terms) != 2 or state.inner not in terms:
            continue
        ((operand, share),) = [(value, number) for value, number in terms.items() if value is not state.inner]
        weight = _weight(loop, terms[state.inner], share, state)
        if weight is not None:
            exact_to = combined(np.add, terms[state.inner], share).exact_to
            yield Average(state, "Mean", node, operand, (node,), (node,), weight=weight, sums=reader.sums, exact_to=exact_to)


def _last(state: State, loop: ScanView) -> ir.Node | None:
    next_value = through_identity(state.next)
    node = None if next_value is None else next_value.producer()
    return node if node is not None and node.graph is loop.body and node.op_type in ("Add", "Sub", "Div", "Mul") else None


def _weight(loop: ScanView, decay: Numbers, share: Numbers, state: State) -> float | None:
    """Return the number of values whose mean is the initial state; None if the state is no mean.

    ``decay`` is the factor of the state in a step, and ``share`` is the factor of its operand. The state is a running mean if
    ``decay`` is ``(n - 1) / n`` and ``share`` is ``1 / n``, for a number n that grows by 1 in each step. The function returns n - 1
    of the first step.
    """
    kind = state.inner.dtype
    assert kind is not None
    is_listed, known = decay.listed or share.listed, loop.steps if isinstance(loop.steps, int) else 0
    steps, near = _samples(loop, is_listed), 4 * float(np.finfo(kind.numpy()).eps) if is_listed else 0.0
    try:
        with np.errstate(all="raise"):
            decays, shares = decay.of(steps), share.of(steps)
            first = 1 / shares[0]
            weight = float(round(first)) - 1 if near else first - 1
            counts = steps + (weight + 1)
            # shares must be close relative to 1 / n: a decay near 1 determines n badly, with an error that grows with n
            fits = (abs(shares * counts - 1) <= near).all() and (abs(decays * counts - (counts - 1)) <= near * counts).all()
    except (ArithmeticError, IndexError):
        return None
    if not fits or weight < 0 or known + weight > _EXACT_TO:
        return None
    return float(weight)


def _samples(loop: ScanView, are_listed: bool) -> np.ndarray:
    """Return the steps for which factors are compared.

    If ``are_listed``, they are all steps of the loop as floats, otherwise ``_SAMPLES`` steps as fractions.
    """
    if are_listed:
        return np.arange(loop.steps if isinstance(loop.steps, int) else 0, dtype=np.float64)
    return np.array([Fraction(step) for step in range(_SAMPLES)], object)


def _is_large(factor: Numbers, loop: ScanView) -> bool:
    """Return True if ``factor`` is, or may be, more than 1 in magnitude in some step."""
    with np.errstate(all="ignore"):
        try:
            return bool((abs(factor.of(_samples(loop, factor.listed))) > 1).any())
        except (ArithmeticError, IndexError):
            return True


class _TermReader:
    """Reads values of the body as sums of terms.

    A term is the state or another body value, times a factor that depends only on the step number.
    """

    def __init__(self, loop: ScanView, state: State, varying: set[ir.Value], numbers: StepNumbers) -> None:
        self._loop, self._state, self._varying, self._numbers = loop, state, varying, numbers
        self._left = _MOST_NODES
        self.sums = False

    def terms(self, value: ir.Value | None) -> dict[ir.Value, Numbers] | None:
        """Return the terms whose sum is ``value``, or None if ``value`` is no such sum.

        Each term is a value times a factor. The result maps the value, which is the state or another body value, to the factor.
        """
        value = through_identity(value)
        unit = Numbers(lambda steps: steps * 0 + 1)
        if value is None or value is self._state.inner:
            return None if value is None else {value: unit}
        node, is_free = value.producer(), value not in self._varying
        result = None
        if (
            node is not None
            and node.graph is self._loop.body
            and node.domain == ""
            and (not is_free or node.op_type in ("Div", "Mul"))
        ):
            self._left -= 1
            result = self._read(node) if self._left >= 0 else None
        return {value: unit} if result is None and is_free else result

    def _read(self, node: ir.Node) -> dict[ir.Value, Numbers] | None:
        if node.op_type in ("Add", "Sub"):
            first, second = (self.terms(value) for value in node.inputs)
            if first is None or second is None:
                return None
            merged = dict(first)
            for value, number in second.items():
                added = number if node.op_type == "Add" else combined(np.negative, number)
                merged[value] = combined(np.add, merged[value], added) if value in merged else added
            return merged
        if node.op_type not in ("Div", "Mul"):
            return None
        left, right = node.inputs
        factor = self._numbers.of(right)
        if factor is None and node.op_type == "Mul":
            left, factor = right, self._numbers.of(left)
        result = None if factor is None else self.terms(left)
        if result is None or factor is None:
            return None
        compute = np.multiply if node.op_type == "Mul" else np.true_divide
        if _is_large(factor, self._loop) == (node.op_type == "Mul"):
            if self._state.inner not in result:
                return None
            self.sums = True
        return {value: combined(compute, number, factor) for value, number in result.items()}
