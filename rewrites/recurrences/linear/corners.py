"""What one step makes of states and drives that are infinite, not numbers, or zeros of either sign.

The step as the loop computes it and the step as it would be written are run on all combinations of such values, so that a spelling
of the body in which they come to something else, such as ``s + a * (x - s)`` for an infinite state, gets a form of its own.
"""

import itertools
from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

from rewrites.base.postorder import postorder
from rewrites.loops import State
from rewrites.recurrences.linear.reading import Drive, Linear, Reader, drives_in_order

__all__ = ["form_of"]

_CORNERS = (np.inf, -np.inf, np.nan, 0.0, -0.0, 1.5, -0.75)
_MOST_LEAVES = 3

_OPERATORS: Mapping[str, Callable[..., np.ndarray]] = {
    "Identity": lambda x: x,
    "Neg": lambda x: -x,
    "Add": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "Div": lambda x, y: x / y,
}


def form_of(state: State, linear: Linear, decay: np.ndarray, reader: Reader) -> str | None:
    """Return how a state is prepared before its ``decay``, so that corners come to the same.

    "Add" and "Sub" put 0 times the state to it, "" is the state itself. None: there is no such form.
    """
    if (decay <= 0).any():
        return None  # 0 and what is negative do not keep the signs of zeros apart: a * (0 + -0) is not a * 0 + a * -0
    step = _Step(state, reader)
    leaves = step.leaves(state.next)
    if len(leaves) > _MOST_LEAVES:
        return None
    axes = [1] * decay.ndim
    corners = np.array(list(itertools.product(_CORNERS, repeat=1 + len(leaves))), step.dtype)
    given = {value: corners[:, index].reshape(-1, *axes) for index, value in enumerate([state.inner, *leaves])}
    with np.errstate(all="ignore"):
        wanted = step.value(state.next, given)
        drive, own = step.driven(linear.drive, given), given[state.inner]
        zero = own * step.dtype.type(0)
        forms = {"": own, "Add": own + zero, "Sub": own - zero}
        for name, prepared in forms.items():
            if _alike(wanted, drive + decay.astype(step.dtype) * prepared):
                return name
    return None


class _Step:
    """The body's own arithmetic on ``state``, in numpy."""

    def __init__(self, state: State, reader: Reader) -> None:
        assert state.inner.dtype is not None
        self.dtype = np.dtype(state.inner.dtype.numpy())
        self._state, self._reader = state, reader

    def leaves(self, value: ir.Value) -> list[ir.Value]:
        """Return the values that ``value`` is computed from, beside the state and constants."""
        ends = [each for each in self._in_order(value) if not self._operands(each) and self._reader.constant(each) is None]
        return [each for each in ends if each is not self._state.inner]

    def value(self, value: ir.Value, given: Mapping[ir.Value, np.ndarray]) -> np.ndarray:
        """Return ``value`` where the state and the leaves are as ``given``."""
        known = dict[ir.Value, np.ndarray]()
        for each in self._in_order(value):
            array, node = given.get(each, self._reader.constant(each)), each.producer()
            if array is not None:
                known[each] = array.astype(self.dtype)
            else:
                assert node is not None
                known[each] = _OPERATORS[node.op_type](*(known[operand] for operand in self._operands(each)))
        return known[value]

    def _in_order(self, value: ir.Value) -> list[ir.Value]:
        """Return ``value`` and all that it is computed from, back to the state and the leaves, each after its operands."""
        return postorder([value], self._operands)

    def _operands(self, value: ir.Value) -> list[ir.Value]:
        node = value.producer()
        if value is self._state.inner or self._reader.is_free(value) or node is None:
            return []
        return [operand for operand in node.inputs if operand is not None]

    def driven(self, drive: Drive | ir.Value | None, given: Mapping[ir.Value, np.ndarray]) -> np.ndarray:
        """Return the drive."""
        assert drive is not None
        known = dict[Drive | ir.Value, np.ndarray]()
        for part in drives_in_order(drive):
            if isinstance(part, ir.Value):
                known[part] = self.value(part, given)
                continue
            operands = [known[operand] for operand in part.operands if operand is not None]
            if len(operands) == len(part.operands):
                known[part] = _OPERATORS[part.node.op_type](*operands)
            else:
                is_taken_off = part.operands[0] is None and part.node.op_type == "Sub"
                known[part] = -operands[0] if is_taken_off else operands[0]
        return known[drive]


def _alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether numbers are close, infinities and zeros of one sign, and the rest is not numbers in both."""
    one, other = np.broadcast_arrays(one, other)
    zeros = (one == 0) | (other == 0)
    same_zeros = (one[zeros] == other[zeros]).all() and (np.signbit(one[zeros]) == np.signbit(other[zeros])).all()
    return bool(same_zeros and np.allclose(one, other, rtol=1e-3, atol=0, equal_nan=True))
