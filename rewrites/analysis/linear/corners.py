"""What one step makes of states and drives that are infinite, not numbers, or zeros of either sign.

The step as the loop computes it and the step as it would be written are run on all combinations of such values, so that a spelling
of the body in which they come to something else, such as ``s + a * (x - s)`` for an infinite state, gets a form of its own.
"""

import itertools
from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

from rewrites.analysis.linear.reading import Drive, Linear, Reader
from rewrites.loops import State

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
        node = value.producer()
        if value is self._state.inner or self._reader.constant(value) is not None:
            return []
        if self._reader.is_free(value) or node is None:
            return [value]
        found = (leaf for operand in node.inputs if operand is not None for leaf in self.leaves(operand))
        return list(dict.fromkeys(found))

    def value(self, value: ir.Value, given: Mapping[ir.Value, np.ndarray]) -> np.ndarray:
        """Return ``value`` where the state and the leaves are as ``given``."""
        known = given.get(value, self._reader.constant(value))
        if known is not None:
            return known.astype(self.dtype)
        node = value.producer()
        assert node is not None
        return _OPERATORS[node.op_type](*(self.value(operand, given) for operand in node.inputs if operand is not None))

    def driven(self, drive: Drive | ir.Value | None, given: Mapping[ir.Value, np.ndarray]) -> np.ndarray:
        """Return the drive."""
        if not isinstance(drive, Drive):
            assert drive is not None
            return self.value(drive, given)
        operands = [None if operand is None else self.driven(operand, given) for operand in drive.operands]
        (first, *others) = [operand for operand in operands if operand is not None]
        if others or len(operands) == 1:
            return _OPERATORS[drive.node.op_type](first, *others)
        return -first if operands[0] is None and drive.node.op_type == "Sub" else first


def _alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether numbers are close, infinities and zeros of one sign, and the rest is not numbers in both."""
    one, other = np.broadcast_arrays(one, other)
    zeros = (one == 0) | (other == 0)
    same_zeros = (one[zeros] == other[zeros]).all() and (np.signbit(one[zeros]) == np.signbit(other[zeros])).all()
    return bool(same_zeros and np.allclose(one, other, rtol=1e-3, atol=0, equal_nan=True))
