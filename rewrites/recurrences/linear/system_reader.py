"""Read a loop as one linear system with constant coefficients, which may differ from step to step.

There are two kinds of systems:

* In an elementwise body, all values have the same shape, and the same system applies to each element. Such a body consists of
  Identity, Neg, Add, Sub, and Mul and Div by constants of one element.
* Other bodies mix the elements of their states. Then all elements of all states form one system, so they must be few. Such a body
  may also have MatMul and Gemm by constants, sums over axes, and operators that move elements.

A value that does not depend on the states becomes an input of the system if the reader cannot compute it from other inputs. Rows of
a scanned constant are such inputs too, unless the reader reads them as coefficients. An example is the gain of a Kalman filter.
"""

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import reads, varying_values
from rewrites.graph.values import is_constant, rank_of, static_dims
from rewrites.loops import ScanInput, ScanView
from rewrites.ops.element_moves import movement
from rewrites.ops.versions import Dynamic, axes_of, keepdims
from rewrites.recurrences.constants import ConstantReader
from rewrites.recurrences.linear.affine_map import AffineMap, biases, matrix_of, moved
from rewrites.recurrences.linear.system import System
from rewrites.scans.block_responses import Matrices

__all__ = ["SystemReader", "read_system"]

_MOST_STATES, _MOST_INPUTS = 64, 128
_MOST_COEFFICIENTS = 1 << 20
"""The most elements of the matrices of the states for all steps, if they differ from step to step."""
_MOVED = {"Concat", "Expand", "Gather", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"}
_ELEMENTWISE = frozenset({"Add", "Div", "Identity", "Mul", "Neg", "Sub"})
_FOLLOWED = _ELEMENTWISE | {"Gemm", "MatMul", "ReduceSum", *_MOVED}
_BINARY = frozenset({"Add", "Sub", "Mul", "Div", "MatMul", "Gemm"})


def read_system(loop: ScanView, opset: int) -> tuple[System | None, "SystemReader"]:
    """Return ``loop`` as a system, or None, and its reader.

    Rows of scanned constants become coefficients only if ``loop`` is no system otherwise.
    """
    reader = SystemReader(loop, opset, is_elementwise=True)
    system = reader.system()
    if (system is not None and system.has_one_shape) or not SystemReader.supports_body(loop):
        return system, reader
    for is_elementwise, reads_rows in ((False, False), (True, True), (False, True)):
        if reads_rows and not _has_few_coefficients(loop, is_elementwise):
            continue
        other = SystemReader(loop, opset, is_elementwise=is_elementwise, reads_rows=reads_rows)
        read = other.system()
        if read is not None and (not is_elementwise or read.has_one_shape):
            return read, other
    return system, reader


def _has_few_coefficients(loop: ScanView, is_elementwise: bool) -> bool:
    """Return True if the loop scans a constant, and the matrices of the states for all steps stay small."""
    states = sum(1 if is_elementwise else math.prod(static_dims(state.inner) or (1,)) for state in loop.states)
    steps = loop.steps if isinstance(loop.steps, int) else 0
    return 0 < steps * states * states <= _MOST_COEFFICIENTS and any(is_constant(scan.outer) for scan in loop.scan_inputs)


class SystemReader:
    """Reads values in the body of ``loop`` as linear functions of the states and inputs, plus a constant.

    Args:
        loop: The loop.
        opset: The opset of the model.
        is_elementwise: True if the same system applies to each element. Each value is then read as one number.
        reads_rows: True if rows of scanned constants are coefficients, which differ from step to step.
    """

    def __init__(self, loop: ScanView, opset: int, *, is_elementwise: bool, reads_rows: bool = False) -> None:
        self._loop, self._constants, self._opset, self._is_elementwise = loop, ConstantReader(opset), opset, is_elementwise
        self._rank = min((rank_of(state.inner) or 0 for state in loop.states), default=0)
        self._known = {state.inner: self._source(state.inner, _MOST_STATES) for state in loop.states}
        self._varying = set(self._known)
        if reads_rows:
            self._known |= {scan.inner: rows for scan in loop.scan_inputs if (rows := self._rows(scan)) is not None}
        for node in loop.body:
            varies = any(value in self._varying for value in reads(node))
            if varies:
                self._varying.update(node.outputs)
            maps: Sequence[AffineMap | None] = self._tried(node, varies) or [None] * len(node.outputs)
            for value, affine in zip(node.outputs, maps, strict=False):
                fits = affine is not None and (is_elementwise or affine.dims == static_dims(value))
                if fits or varies:
                    self._known[value] = affine if fits else None

    @staticmethod
    def supports_body(loop: ScanView) -> bool:
        """Return True if this class supports every operator of the body whose result depends on a state."""
        varying = varying_values(loop.body, [state.inner for state in loop.states])
        return all(node.op_type in _FOLLOWED for node in loop.body if any(value in varying for value in node.outputs))

    def constant(self, value: ir.Value | None) -> np.ndarray | None:
        """Return the array of ``value`` if it is constant, else None."""
        return None if value is None or value in self._varying else self._constants.of(value)

    def numbers(self, value: ir.Value | None) -> np.ndarray | None:
        """Return the numbers that the float ``value`` has in all steps if they are constant, else None."""
        array = self.constant(value)
        affine = None if array is not None or value is None else self._known.get(value)
        return array if affine is None or affine.terms else affine.bias

    def is_input(self, value: ir.Value) -> bool:
        """Return True if ``value`` cannot be computed from other values as a linear function.

        It is then a state, an input of the system, or not linear.
        """
        affine = self._of(value)
        return affine is None or value in affine.terms

    def system(self) -> System | None:
        """Return the loop as a linear system, or None if it is not linear or has too many elements."""
        loop = self._loop
        states = [state.inner for state in loop.states]
        results = [*(state.next for state in loop.states), *(output.inner for output in loop.scan_outputs)]
        maps = [affine for value in results if (affine := self._of(value)) is not None]
        if len(maps) < len(results) or sum(map(self._size, states)) > _MOST_STATES:
            return None
        if any(affine.size != self._size(state) for affine, state in zip(maps, states, strict=False)):
            return None
        inputs = list(dict.fromkeys(source for affine in maps for source in affine.terms if source not in states))
        sources, count = [*states, *inputs], len(states)
        between = [
            affine for affine in self._known.values() if affine is not None and all(source in sources for source in affine.terms)
        ]
        widths = [self._size(value) for value in sources]
        nexts, outputs = (matrix_of(part, sources, widths) for part in (maps[:count], maps[count:]))
        end, added = sum(widths[:count]), biases(maps[count:])
        return System(
            loop.states,
            tuple(inputs),
            loop.scan_outputs,
            Matrices(nexts[:, :end], nexts[:, end:], biases(maps[:count]), outputs[:, :end], outputs[:, end:], added),
            np.abs(matrix_of(between, sources, widths)).max(0),
            tuple(widths[:count]),
            tuple(widths[count:]),
            tuple(affine.size for affine in maps[count:]),
            self._is_elementwise,
        )

    def _size(self, value: ir.Value) -> int:
        return 1 if self._is_elementwise else math.prod(static_dims(value) or ())

    def _source(self, value: ir.Value, most: int) -> AffineMap | None:
        if self._is_elementwise:
            return AffineMap.source(value, ())
        dims = static_dims(value)
        if dims is None or not 0 < math.prod(dims) <= most or value.dtype is None or not value.dtype.is_floating_point():
            return None
        return AffineMap.source(value, dims)

    def _of(self, value: ir.Value | None) -> AffineMap | None:
        if value is None:
            return None
        if value not in self._known:
            array = self._number(value) if self._is_elementwise else self.constant(value)
            is_number = array is not None and array.dtype.kind == "f"
            affine = AffineMap(array.astype(np.float64)[None]) if array is not None and is_number else None
            self._known[value] = affine or self._source(value, _MOST_INPUTS)
        return self._known[value]

    def _rows(self, scan: ScanInput) -> AffineMap | None:
        """Return the rows of a scanned constant in the order of the steps; None if ``scan`` is not constant."""
        stack = self._constants.of(scan.outer)
        if stack is None or stack.dtype.kind != "f" or not np.isfinite(stack).all():
            return None
        if self._is_elementwise and (stack.size != len(stack) or stack.ndim > self._rank + 1):
            return None
        rows = stack.astype(np.float64)
        return AffineMap((rows.reshape(len(rows)) if self._is_elementwise else rows)[:: -1 if scan.reverse else 1])

    def _number(self, value: ir.Value | None) -> np.ndarray | None:
        """Return the element of ``value`` if it is a float constant of one element, else None.

        Also return None if ``value`` has more axes than a state.
        """
        array = self.constant(value)
        if array is None or array.size != 1 or array.ndim > self._rank or array.dtype.kind != "f":
            return None
        return array.reshape(()).astype(np.float64)

    def _tried(self, node: ir.Node, varies: bool) -> list[AffineMap] | None:
        if self._is_elementwise and node.op_type not in _ELEMENTWISE:
            return None
        try:
            maps = self._read(node)
        except (ValueError, IndexError):  # the shapes do not fit, so the node is not read
            return None
        if self._is_elementwise and not varies and maps is not None and node.op_type in ("Add", "Sub") and len(maps[0].terms) > 1:
            return None  # a sum of several inputs becomes one input
        return maps

    def _read(self, node: ir.Node) -> list[AffineMap] | None:
        operands = [value for value in node.inputs if value is not None]
        first = self._of(operands[0]) if node.domain == "" and operands else None
        if first is None:
            return None
        if node.op_type in _BINARY:
            second = self._of(operands[1]) if len(operands) > 1 else None
            return None if second is None else self._combined(node, first, second)
        if node.op_type in ("Identity", "Neg"):
            return [first if node.op_type == "Identity" else first.times(-1.0)]
        if node.op_type == "ReduceSum":
            return self._summed(node, first)
        movements = movement(
            node, self._opset, first.dims, lambda index: self.constant(operands[index]) if index < len(operands) else None
        )
        parts = [self._of(value) for value in operands] if node.op_type == "Concat" else [first]
        if movements is None or any(part is None for part in parts):
            return None
        return moved(movements.apply, [part for part in parts if part is not None])

    def _combined(self, node: ir.Node, first: AffineMap, second: AffineMap) -> list[AffineMap] | None:
        if node.op_type in ("Add", "Sub"):
            return [first.plus(second, 1.0 if node.op_type == "Add" else -1.0)]
        if node.op_type == "Div":
            return [first.times(1 / second.bias)] if not second.terms and (second.bias != 0).all() else None
        if node.op_type == "Gemm":
            return self._gemm(node, first, second)
        if first.terms and second.terms:
            return None
        if node.op_type == "Mul":
            return [first.times(second.bias) if not second.terms else second.times(first.bias)]
        return [first.product(second.bias, False) if not second.terms else second.product(first.bias, True)]

    def _gemm(self, node: ir.Node, first: AffineMap, second: AffineMap) -> list[AffineMap] | None:
        left = first.transposed() if node.attributes.get_int("transA", 0) else first
        right = second.transposed() if node.attributes.get_int("transB", 0) else second
        if left.terms and right.terms:
            return None
        product = left.product(right.bias, False) if not right.terms else right.product(left.bias, True)
        product = product.times(node.attributes.get_float("alpha", 1.0))
        if len(node.inputs) < 3 or node.inputs[2] is None:
            return [product]
        added = self._of(node.inputs[2])
        return None if added is None else [product.plus(added.times(node.attributes.get_float("beta", 1.0)))]

    def _summed(self, node: ir.Node, first: AffineMap) -> list[AffineMap] | None:
        axes = axes_of(node, self._opset, len(first.dims))
        if axes is None or isinstance(axes, Dynamic) or not axes:
            return None
        return [first.summed(axes, keepdims=keepdims(node))]
