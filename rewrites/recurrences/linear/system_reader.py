"""Read a loop as one linear system with constant coefficients.

There are two kinds of systems:

* In an elementwise body, all values have the same shape, and the same system applies to each element. Such a body consists of
  Identity, Neg, Add, Sub, and Mul and Div by constants of one element.
* Other bodies mix the elements of their states. Then all elements of all states form one system, so they must be few. Such a body
  may also have MatMul and Gemm by constants, sums over axes, and operators that move elements.

A value that does not depend on the states becomes an input of the system if the reader cannot compute it from other inputs.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import reads, varying_values
from rewrites.graph.values import rank_of, static_dims
from rewrites.loops import ScanView
from rewrites.ops.element_moves import movement
from rewrites.ops.versions import Dynamic, axes_of, keepdims
from rewrites.recurrences.constants import ConstantReader
from rewrites.recurrences.linear.system import AffineMap, System
from rewrites.scans.linear_system import Matrices

__all__ = ["SystemReader"]

_MOST_STATES, _MOST_INPUTS = 64, 128
_MOVED = {"Concat", "Expand", "Gather", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"}
_ELEMENTWISE = frozenset({"Add", "Div", "Identity", "Mul", "Neg", "Sub"})
_FOLLOWED = _ELEMENTWISE | {"Gemm", "MatMul", "ReduceSum", *_MOVED}
_BINARY = frozenset({"Add", "Sub", "Mul", "Div", "MatMul", "Gemm"})


class SystemReader:
    """Reads values in the body of ``loop`` as linear functions of the states and inputs, plus a constant.

    ``is_elementwise``: True if the same system applies to each element. Each value is then read as one number.
    """

    def __init__(self, loop: ScanView, opset: int, *, is_elementwise: bool) -> None:
        self._loop, self._constants, self._opset, self._is_elementwise = loop, ConstantReader(opset), opset, is_elementwise
        self._rank = min((rank_of(state.inner) or 0 for state in loop.states), default=0)
        self._known = {state.inner: self._source(state.inner, _MOST_STATES) for state in loop.states}
        self._varying = set(self._known)
        for node in loop.body:
            varies = any(value in self._varying for value in reads(node))
            if varies:
                self._varying.update(node.outputs)
            maps = self._tried(node, varies)
            for index, value in enumerate(node.outputs):
                affine = None if maps is None else maps[index]
                fits = affine is not None and (is_elementwise or affine.bias.shape == static_dims(value))
                self._known[value] = affine if fits else None if varies else self._source(value, _MOST_INPUTS)

    @staticmethod
    def supports_body(loop: ScanView) -> bool:
        """Return True if this class supports every operator of the body whose result depends on a state."""
        varying = varying_values(loop.body, [state.inner for state in loop.states])
        return all(node.op_type in _FOLLOWED for node in loop.body if any(value in varying for value in node.outputs))

    def constant(self, value: ir.Value | None) -> np.ndarray | None:
        """Return the array of ``value`` if it is constant, else None."""
        return None if value is None or value in self._varying else self._constants.of(value)

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
        if any(affine.bias.size != self._size(state) for affine, state in zip(maps, states, strict=False)):
            return None
        inputs = list(dict.fromkeys(source for affine in maps for source in affine.terms if source not in states))
        sources, count = [*states, *inputs], len(states)
        between = [
            affine for affine in self._known.values() if affine is not None and all(source in sources for source in affine.terms)
        ]
        widths = [self._size(value) for value in sources]
        nexts, outputs = (_matrix(part, sources, widths) for part in (maps[:count], maps[count:]))
        end = sum(widths[:count])
        return System(
            loop.states,
            tuple(inputs),
            loop.scan_outputs,
            Matrices(nexts[:end], nexts[end:], _biases(maps[:count]), outputs[:end], outputs[end:], _biases(maps[count:])),
            _matrix(between, sources, widths),
            tuple(widths[:count]),
            tuple(widths[count:]),
            tuple(affine.bias.size for affine in maps[count:]),
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
            affine = AffineMap(array.astype(np.float64)) if array is not None and is_number else None
            self._known[value] = affine or self._source(value, _MOST_INPUTS)
        return self._known[value]

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
            return [first if node.op_type == "Identity" else first.times(np.array(-1.0))]
        if node.op_type == "ReduceSum":
            return self._summed(node, first)
        moved = movement(
            node, self._opset, first.bias.shape, lambda index: self.constant(operands[index]) if index < len(operands) else None
        )
        parts = [self._of(value) for value in operands] if node.op_type == "Concat" else [first]
        if moved is None or any(part is None for part in parts):
            return None
        return _moved(moved.apply, [part for part in parts if part is not None])

    def _scaled(self, node: ir.Node, first: AffineMap, second: AffineMap) -> list[AffineMap] | None:
        """Return the result of ``node``, a Mul or Div of ``first`` and ``second``.

        Return None unless the node multiplies or divides by a constant number.
        """
        left, right = (self._number(value) for value in node.inputs)
        if node.op_type == "Div":
            return [first.times(1 / right)] if right is not None and right != 0 else None
        if right is not None:
            return [first.times(right)]
        return None if left is None else [second.times(left)]

    def _combined(self, node: ir.Node, first: AffineMap, second: AffineMap) -> list[AffineMap] | None:
        if node.op_type in ("Add", "Sub"):
            return [first.plus(second, 1.0 if node.op_type == "Add" else -1.0)]
        if self._is_elementwise:
            return self._scaled(node, first, second)
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
        product = product.times(np.array(node.attributes.get_float("alpha", 1.0)))
        if len(node.inputs) < 3 or node.inputs[2] is None:
            return [product]
        added = self._of(node.inputs[2])
        return None if added is None else [product.plus(added.times(np.array(node.attributes.get_float("beta", 1.0))))]

    def _summed(self, node: ir.Node, first: AffineMap) -> list[AffineMap] | None:
        axes = axes_of(node, self._opset, first.bias.ndim)
        if axes is None or isinstance(axes, Dynamic) or not axes:
            return None
        keep = keepdims(node)
        terms = {source: term.sum(tuple(axis + 1 for axis in axes), keepdims=keep) for source, term in first.terms.items()}
        return [AffineMap(first.bias.sum(tuple(axes), keepdims=keep), terms)]


def _moved(make: Callable[..., Sequence[np.ndarray]], parts: list[AffineMap]) -> list[AffineMap]:
    starts = np.cumsum([0, *(part.bias.size for part in parts)])
    indices = [np.arange(part.bias.size).reshape(part.bias.shape) + start for part, start in zip(parts, starts, strict=False)]
    sources = {source: len(term) for part in parts for source, term in part.terms.items()}
    terms = {
        source: np.concatenate(
            [part.terms.get(source, np.zeros((size, *part.bias.shape))).reshape(size, -1) for part in parts], axis=1
        )
        for source, size in sources.items()
    }
    whole = AffineMap(_biases(parts), terms)
    return [whole.gathered(index) for index in make(indices)]


def _matrix(maps: list[AffineMap], sources: list[ir.Value], widths: list[int]) -> np.ndarray:
    """Return the coefficients of all ``maps`` as one matrix [elements of sources, elements of maps].

    ``widths``: the number of elements of each source.
    """
    count = sum(affine.bias.size for affine in maps)
    rows = np.zeros((sum(widths), count))
    starts = np.cumsum([0, *widths])
    for index, (source, width) in enumerate(zip(sources, widths, strict=True)):
        parts = [
            affine.terms[source].reshape(width, -1) if source in affine.terms else np.zeros((width, affine.bias.size))
            for affine in maps
        ]
        if parts:
            rows[starts[index] : starts[index + 1]] = np.concatenate(parts, 1)
    return rows


def _biases(maps: list[AffineMap]) -> np.ndarray:
    return np.concatenate([affine.bias.reshape(-1) for affine in maps]) if maps else np.zeros(0)
