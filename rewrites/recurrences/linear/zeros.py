"""Find the values of a linear body that may be -0.

A matrix product over a block of steps may turn -0 into +0, so a body with such values needs a check. These rules decide:

* A sum is -0 only if both operands are -0. If the operands cancel, the sum is +0.
* The sign of a product is the product of the signs.
* A matrix product of onnxruntime starts its sum at +0. A kernel that also adds an operand (Gemm) starts its sum at this operand.
* Zeros that result from underflow are not considered.
"""

from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

from rewrites.loops import ScanView
from rewrites.recurrences.linear.system import System
from rewrites.recurrences.linear.system_reader import SystemReader

__all__ = ["gives_negative_zeros"]

_PLUS, _MINUS, _BOTH, _PRODUCT = 1, 2, 3, 4


def gives_negative_zeros(
    loop: ScanView,
    system: System,
    reader: SystemReader,
    constants: Mapping[ir.Value, np.ndarray | None],
    *,
    assume_no_negative_zeros: bool,
) -> bool:
    """Return True if a result of ``loop`` may be -0.

    Args:
        constants: The constant initial value of each state; None if it is not constant.
        assume_no_negative_zeros: True to assume that inputs and the initial values that are not constant contain no -0.
    """
    free = _PLUS if assume_no_negative_zeros else _BOTH
    signs = {state.inner: _of_numbers(constants.get(state.inner), free) for state in loop.states}
    while True:
        body_signs = _Signs(loop, reader, signs, free)
        after = {state.inner: signs[state.inner] | (body_signs.of(state.next) & _BOTH) for state in loop.states}
        if after == signs:
            break
        signs = after
    results = [*(state.next for state in system.kept), *(output.inner for output in loop.scan_outputs)]
    return any(body_signs.of(value) & _MINUS for value in results)


def _of_numbers(numbers: np.ndarray | None, free: int) -> int:
    if numbers is None:
        return free
    zeros = numbers[numbers == 0]
    return _PLUS * bool((~np.signbit(zeros)).any()) | _MINUS * bool(np.signbit(zeros).any())


def _negated(signs: int) -> int:
    return (signs & _PLUS) << 1 | (signs & _MINUS) >> 1


def _added(left: int, right: int) -> int:
    """Return the signs that zeros of a sum may have, given the signs of both operands.

    The sum of a matrix product and another operand may be -0 if the other operand may be -0.
    """
    with_product = (left if right & _PRODUCT else 0) | (right if left & _PRODUCT else 0)
    return _PLUS | ((left & right | with_product) & _MINUS)


class _Signs:
    """Finds the signs that zeros may have in each value of a body.

    Args:
        states: The signs that zeros may have in each state.
        free: The signs that zeros may have in values that do not depend on a state.
    """

    def __init__(self, loop: ScanView, reader: SystemReader, states: Mapping[ir.Value, int], free: int) -> None:
        self._reader, self._free = reader, free
        self._known = dict(states)
        for node in loop.body:
            for value in node.outputs:
                if not reader.is_input(value):
                    self._known[value] = self._computed(node)

    def of(self, value: ir.Value | None) -> int:
        """Return the signs that zeros of ``value`` may have."""
        array = self._reader.numbers(value)
        if array is not None:
            return _of_numbers(array, self._free)
        assert value is not None
        return self._known.get(value, self._free)

    def _computed(self, node: ir.Node) -> int:
        signs = [self.of(value) for value in node.inputs if value is not None]
        if node.op_type in ("Mul", "Div"):
            return self._scaled(node, signs)
        return _SIGNS.get(node.op_type, _moved)(signs)

    def _scaled(self, node: ir.Node, signs: list[int]) -> int:
        arrays = [self._reader.numbers(value) for value in node.inputs]
        by = 1 if arrays[1] is not None else 0
        numbers = arrays[by]
        if numbers is None or (numbers == 0).any():
            return _BOTH
        kept, negated = bool((numbers > 0).any()), bool((numbers < 0).any())
        return (signs[1 - by] & _BOTH) * kept | _negated(signs[1 - by]) * negated


def _moved(signs: list[int]) -> int:
    """Return the signs that zeros may have in the result of a node that moves or sums elements.

    ``signs``: the signs that zeros may have in each operand.
    """
    body_signs = _PLUS
    for left in signs:
        body_signs |= left & _BOTH
    return body_signs


_SIGNS: dict[str, Callable[[list[int]], int]] = {
    "Identity": lambda signs: signs[0],
    "Neg": lambda signs: _negated(signs[0]),
    "Add": lambda signs: _added(signs[0], signs[1]),
    "Sub": lambda signs: _added(signs[0], _negated(signs[1])),
    "MatMul": lambda _: _PLUS | _PRODUCT,
    "Gemm": lambda signs: _PLUS | _PRODUCT | (signs[2] & _MINUS if len(signs) > 2 else 0),
}
