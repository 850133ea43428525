"""Read values that depend only on the step number t, such as ``1 / (t + 1)``, as functions of t.

Three kinds of values are read: scan inputs that count the steps (a Range or a CumSum of ones), constant scan inputs, and values
that the body computes from these scan inputs. In each step, all elements of a value must be equal. A count in float32 stops at
2 ** 24, because adding 1 to this number changes nothing. ``Numbers.exact_to`` holds this limit.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import EXACT
from rewrites.graph.dims import same
from rewrites.graph.values import through_identity
from rewrites.loops import ScanView
from rewrites.recurrences.constants import NUMPY, ConstantReader

__all__ = ["Numbers", "StepNumbers", "combined"]

_EXACT = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64})
_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})
_STILL = frozenset({"Expand", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators that copy elements without changing them."""
_FURTHEST = 32
"""The longest chain of nodes to follow, in the body and upstream of the loop."""


@dataclass(frozen=True)
class Numbers:
    """A function of the step number.

    Args:
        of: Maps an array of step numbers to an array of values.
        listed: True if a constant lists the values, so that ``of`` only accepts the step numbers of the loop.
        exact_to: The largest number of steps that a float32 count represents exactly, if the values depend on such a count; None
            for no limit.
    """

    of: Callable[[np.ndarray], np.ndarray]
    listed: bool = False
    exact_to: int | None = None


def combined(compute: Callable[..., np.ndarray], *parts: Numbers) -> Numbers:
    """Return the function of the step number that applies ``compute`` to the values of all ``parts``."""
    limits = [part.exact_to for part in parts if part.exact_to is not None]
    listed = any(part.listed for part in parts)
    return Numbers(
        _cache_last_result(lambda steps: compute(*(part.of(steps) for part in parts))), listed, min(limits, default=None)
    )


def _cache_last_result(of: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Return ``of`` with a cache of its last result.

    Without the cache, a chain of n values that each read the previous value twice would take 2 ** n calls.
    """
    answers: list[tuple[np.ndarray, np.ndarray]] = []

    def remembered(steps: np.ndarray) -> np.ndarray:
        if not answers or answers[0][0] is not steps:
            answers[:] = [(steps, of(steps))]
        return answers[0][1]

    return remembered


class StepNumbers:
    """Reads values of ``loop`` as functions of the step number."""

    def __init__(self, loop: ScanView, opset: int) -> None:
        self._loop, self._constants = loop, ConstantReader(opset)
        self._scans = {scan.inner: scan for scan in loop.scan_inputs}
        self._known = dict[ir.Value, Numbers | None]()
        self._depth = 0
        self._outside = dict[tuple[ir.Value | None, bool], Numbers | None]()

    def of(self, value: ir.Value | None) -> Numbers | None:
        """Return ``value`` as a function of the step number, or None if it depends on anything else.

        ``value`` is computed in the body, or captured by it.
        """
        value = through_identity(value)
        if value is None or self._depth > _FURTHEST:
            return None
        if value not in self._known:
            self._depth += 1
            self._known[value] = self._read(value)
            self._depth -= 1
        return self._known[value]

    def _read(self, value: ir.Value) -> Numbers | None:
        array = self._constants.of(value)
        if array is not None:
            return _filled(array)
        if value in self._scans:
            return self._rows(self._scans[value].outer, self._scans[value].reverse)
        node = value.producer()
        if node is None or node.graph is not self._loop.body:
            return None
        return _computed(node, self.of)

    def _rows(self, value: ir.Value | None, backwards: bool, depth: int = 0) -> Numbers | None:
        """Return the function that maps a step number to the row of ``value`` that this step scans.

        ``value`` is a tensor outside the loop. If ``backwards``, step 0 scans its last row. Return None if the function is unknown.

        The result is cached, because thousands of nodes may precede a loop, such as the unrolled steps of another loop.
        """
        value = through_identity(value)
        if depth > _FURTHEST:
            return None
        if (value, backwards) not in self._outside:
            self._outside[value, backwards] = self._read_rows(value, backwards, depth)
        return self._outside[value, backwards]

    def _read_rows(self, value: ir.Value | None, backwards: bool, depth: int) -> Numbers | None:
        node = None if value is None else value.producer()
        array = self._constants.of(value)
        if array is not None:
            return _listed(array[::-1] if backwards else array) if array.ndim and array.shape[0] != 1 else _filled(array)
        if value is None or node is None or node.domain != "":
            return None
        if node.op_type == "Range":
            start, step = (self._constants.of(node.inputs[index]) for index in (0, 2))
            return None if start is None or step is None or backwards else _arithmetic(start, step, value.dtype)
        if node.op_type == "CumSum":
            return self._counted(node, backwards)
        if node.op_type == "Slice":
            return self._sliced(node, backwards, depth)
        if node.op_type in _STILL:  # the size of axis 0 must not change
            shapes = [None if each is None else each.shape for each in (node.inputs[0], value)]
            if not same(*(None if shape is None or not len(shape) else ir.Shape([shape[0]]) for shape in shapes)):
                return None
        return _computed(node, lambda operand: self._rows(operand, backwards, depth + 1))

    def _counted(self, node: ir.Node, backwards: bool) -> Numbers | None:
        """Return the results of ``node``, a CumSum, as a function of the step number.

        All rows that the CumSum adds up must hold the same number. Only the first row may hold another number. If the rows differ
        in another way, return None.
        """
        summed, axis = through_identity(node.inputs[0]), self._constants.of(node.inputs[1])
        if summed is None or axis is None or axis.any() or bool(node.attributes.get_int("reverse", 0)) != backwards:
            return None
        before, repeated = self._split_first_row(summed, backwards)
        expanded = None if repeated is None else repeated.producer()
        number = self._constants.of(expanded.inputs[0]) if expanded is not None and expanded.op_type == "Expand" else None
        if number is None or _filled(number) is None or before is None or (before.size and _filled(before) is None):
            return None
        exclusive = bool(node.attributes.get_int("exclusive", 0))
        if before.size:
            return None if exclusive else _arithmetic(before, number, summed.dtype)
        return _arithmetic(np.zeros(1) if exclusive else number, number, summed.dtype)

    def _split_first_row(self, summed: ir.Value, backwards: bool) -> tuple[np.ndarray | None, ir.Value | None]:
        """Split ``summed``, the Concat of a constant first row and other rows.

        Returns:
            A tuple (first row, other rows). If ``summed`` is no Concat, the first row is an empty array and the other rows are
            ``summed``. If the first row is not constant, or the Concat is not supported, the first row is None.
        """
        node = summed.producer()
        if node is None or node.op_type != "Concat":
            return np.zeros(0), summed
        parts = node.inputs[::-1] if backwards else node.inputs
        if len(parts) != 2 or node.attributes.get_int("axis", 0) != 0:
            return None, None
        first = self._constants.of(parts[0])
        return first if first is not None and first.ndim and first.shape[0] == 1 else None, parts[1]

    def _sliced(self, node: ir.Node, backwards: bool, depth: int) -> Numbers | None:
        result = self._rows(node.inputs[0], backwards, depth + 1)
        inputs = [self._constants.of(value) for value in node.inputs[1:]]
        if result is None or len(inputs) < 3 or any(array is None or array.size != 1 for array in inputs):
            return None
        start, end, axis, *step = (int(array.item()) for array in inputs if array is not None)
        left_out = (0 if end > 1 << 31 else -end) if backwards else start
        if axis != 0 or step not in ([], [1]) or left_out < 0:
            return None
        return replace(result, of=_cache_last_result(lambda steps: result.of(steps + left_out)))


def _filled(array: np.ndarray) -> Numbers | None:
    """Return the constant function of the one number that fills ``array``; None if its elements differ."""
    if array.dtype.kind not in "iuf" or not array.size or not (array == array.flat[0]).all() or not np.isfinite(array.flat[0]):
        return None
    number = Fraction(array.flat[0].item())
    return Numbers(lambda steps: np.full(steps.shape, number if steps.dtype == object else float(number), steps.dtype))


def _listed(array: np.ndarray) -> Numbers | None:
    rows = array.reshape(len(array), -1)
    if array.dtype.kind not in "iuf" or not rows.size or not (rows == rows[:, :1]).all() or not np.isfinite(rows).all():
        return None
    return Numbers(lambda steps: rows[steps.astype(np.int64), 0].astype(np.float64), listed=True)


def _arithmetic(start: np.ndarray, step: np.ndarray, dtype: ir.DataType | None) -> Numbers:
    first, increment = Fraction(start.flat[0].item()), Fraction(step.flat[0].item())

    def numbers(steps: np.ndarray) -> np.ndarray:
        result: np.ndarray = steps * increment + first if steps.dtype == object else steps * float(increment) + float(first)
        return result

    return Numbers(numbers, exact_to=EXACT[ir.DataType.FLOAT] if dtype == ir.DataType.FLOAT else None)


def _computed(node: ir.Node, read: Callable[[ir.Value | None], Numbers | None]) -> Numbers | None:
    kind = node.outputs[0].dtype
    if node.domain != "" or kind not in _EXACT:
        return None
    inputs = [read(value) for value in node.inputs[: 1 if node.op_type in _STILL else None]]
    parts = [part for part in inputs if part is not None]
    if len(parts) < len(inputs) or not parts:
        return None
    source = node.inputs[0]
    is_exact = kind in _FLOATS or (source is not None and source.dtype is not None and source.dtype not in _FLOATS)
    if node.op_type in _STILL or (node.op_type == "Cast" and is_exact):
        return parts[0]
    compute = _ARITHMETIC.get(node.op_type) if kind in _FLOATS else _ON_INTEGERS.get(node.op_type)
    return None if compute is None else combined(compute, *parts)


_ON_INTEGERS: dict[str, Callable[..., np.ndarray]] = {name: NUMPY[name] for name in ("Add", "Mul", "Neg", "Sub")}
_ARITHMETIC = _ON_INTEGERS | {"Div": NUMPY["Div"], "Reciprocal": lambda x: 1 / x}
