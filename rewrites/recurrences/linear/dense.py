"""Bodies that mix the elements of few states by constant matrices, read as one system of all elements.

Followed are MatMul and Gemm by constants, Add, Sub, Mul, Div and Neg, sums over axes, and all that only moves elements. Sizes must
be known and small; whatever else does not depend on the states is an input of the system.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import reads, varying_values
from rewrites.graph.values import static_dims
from rewrites.loops import ScanView
from rewrites.ops.movement import movement
from rewrites.ops.versions import Dynamic, axes_of, keepdims
from rewrites.recurrences.constants import Constants
from rewrites.recurrences.linear.system import System

__all__ = ["Dense"]

_MOST_STATES, _MOST_INPUTS = 64, 128


@dataclass(frozen=True)
class _Map:
    """``more``, and for each source what each of its elements adds to it, along axis 0 of an array of the same shape behind."""

    more: np.ndarray
    terms: Mapping[ir.Value, np.ndarray] = field(default_factory=dict)

    def plus(self, other: "_Map", sign: float = 1.0) -> "_Map":
        """Add, with broadcasting."""
        more = self.more + sign * other.more
        terms = dict[ir.Value, np.ndarray]()
        for one, factor in ((self, 1.0), (other, sign)):
            for source, term in one.terms.items():
                lifted = term.reshape(len(term), *[1] * (more.ndim - term.ndim + 1), *term.shape[1:])
                terms[source] = terms.get(source, 0) + factor * np.broadcast_to(lifted, (len(term), *more.shape))
        return _Map(more, terms)

    def times(self, factor: np.ndarray) -> "_Map":
        """Multiply by constants, with broadcasting."""
        one = self.plus(_Map(np.zeros_like(factor)))
        return _Map(one.more * factor, {source: term * factor for source, term in one.terms.items()})

    def product(self, matrix: np.ndarray, is_left: bool) -> "_Map":
        """Multiply by a matrix, which is the left factor where ``is_left``."""
        if self.more.ndim == 1 and is_left:
            matrix, is_left = np.moveaxis(matrix, -1, 0) if matrix.ndim <= 2 else matrix, matrix.ndim > 2
        if matrix.ndim > 2 or (self.more.ndim == 1 and is_left):
            raise ValueError
        terms = {source: matrix @ term if is_left else term @ matrix for source, term in self.terms.items()}
        return _Map(matrix @ self.more if is_left else self.more @ matrix, terms)

    def taken(self, index: np.ndarray) -> "_Map":
        """Return the elements at ``index``, in its shape."""
        terms = {source: term.reshape(len(term), -1)[:, index] for source, term in self.terms.items()}
        return _Map(self.more.reshape(-1)[index], terms)


class Dense:
    """The values of the body of ``loop`` that are affine maps of its states and of inputs, which are small."""

    def __init__(self, loop: ScanView, opset: int) -> None:
        self._loop, self._constants, self._opset = loop, Constants(opset), opset
        self._known: dict[ir.Value, _Map | None] = {state.inner: _source(state.inner, _MOST_STATES) for state in loop.states}
        self._varying = set(self._known)
        for node in loop.body:
            varies = any(value in self._varying for value in reads(node))
            if varies:
                self._varying.update(node.outputs)
            try:
                found = self._read(node)
            except (ValueError, IndexError):  # shapes that do not fit: the node fails, or is not what it seems
                found = None
            for place, value in enumerate(node.outputs):
                fits = found is not None and found[place].more.shape == static_dims(value)
                self._known[value] = (
                    found[place] if found is not None and fits else None if varies else _source(value, _MOST_INPUTS)
                )

    @staticmethod
    def may_be(loop: ScanView) -> bool:
        """Whether all that depends on the states is followed; a look at the operators alone."""
        varying = varying_values(loop.body, [state.inner for state in loop.states])
        return all(node.op_type in _FOLLOWED for node in loop.body if any(value in varying for value in node.outputs))

    def constant(self, value: ir.Value | None) -> np.ndarray | None:
        """Return the array that ``value`` always is, or None."""
        return None if value is None or value in self._varying else self._constants.of(value)

    def is_input(self, value: ir.Value) -> bool:
        """Whether ``value`` is taken as it is."""
        found = self._of(value)
        return found is None or value in found.terms

    def system(self) -> System | None:
        """Return the whole loop as a system, or None where it is none."""
        loop = self._loop
        states = [state.inner for state in loop.states]
        results = [*(state.next for state in loop.states), *(output.inner for output in loop.scan_outputs)]
        found = [one for value in results if (one := self._of(value)) is not None]
        sizes = {value: math.prod(static_dims(value) or ()) for value in states}
        if len(found) < len(results) or sum(sizes.values()) > _MOST_STATES:
            return None
        inputs = list(dict.fromkeys(source for one in found for source in one.terms if source not in states))
        sources = [*states, *inputs]
        between = [one for one in self._known.values() if one is not None and all(source in sources for source in one.terms)]
        widths = [math.prod(static_dims(value) or ()) for value in sources]
        count = len(states)
        made, seen = (_matrix(part, sources, widths) for part in (found[:count], found[count:]))
        cut = sum(widths[:count])
        return System(
            loop.states,
            tuple(inputs),
            loop.scan_outputs,
            made[:cut],
            made[cut:],
            _more(found[:count]),
            seen[:cut],
            seen[cut:],
            _more(found[count:]),
            _matrix(between, sources, widths),
            tuple(widths[:count]),
            tuple(widths[count:]),
            tuple(one.more.size for one in found[count:]),
        )

    def _of(self, value: ir.Value | None) -> _Map | None:
        if value is None:
            return None
        if value not in self._known:
            array = self.constant(value)
            plain = array is not None and array.dtype.kind == "f"
            self._known[value] = _Map(array.astype(np.float64)) if array is not None and plain else _source(value, _MOST_INPUTS)
        return self._known[value]

    def _read(self, node: ir.Node) -> list[_Map] | None:
        given = [value for value in node.inputs if value is not None]
        if node.domain != "" or not given:
            return None
        first = self._of(given[0])
        if first is None:
            return None
        second = self._of(given[1]) if len(given) > 1 and node.op_type in _BINARY else None
        if node.op_type in _BINARY:
            return None if second is None else self._combined(node, first, second)
        if node.op_type in ("Identity", "Neg"):
            return [first if node.op_type == "Identity" else first.times(np.array(-1.0))]
        if node.op_type == "ReduceSum":
            return self._summed(node, first)
        moved = movement(
            node, self._opset, first.more.shape, lambda index: self.constant(given[index]) if index < len(given) else None
        )
        parts = [self._of(value) for value in given] if node.op_type == "Concat" else [first]
        if moved is None or any(part is None for part in parts):
            return None
        return _moved(moved.make, [part for part in parts if part is not None])

    def _combined(self, node: ir.Node, first: _Map, second: _Map) -> list[_Map] | None:
        if node.op_type in ("Add", "Sub"):
            return [first.plus(second, 1.0 if node.op_type == "Add" else -1.0)]
        if node.op_type == "Mul" and (not first.terms or not second.terms):
            return [second.times(first.more) if not first.terms else first.times(second.more)]
        if node.op_type == "Div" and not second.terms and (second.more != 0).all():
            return [first.times(1 / second.more)]
        if node.op_type == "MatMul" and (not first.terms or not second.terms):
            return [first.product(second.more, False) if not second.terms else second.product(first.more, True)]
        return self._gemm(node, first, second) if node.op_type == "Gemm" else None

    def _gemm(self, node: ir.Node, first: _Map, second: _Map) -> list[_Map] | None:
        turned = np.arange(first.more.size).reshape(first.more.shape).T, np.arange(second.more.size).reshape(second.more.shape).T
        left = first.taken(turned[0]) if node.attributes.get_int("transA", 0) else first
        right = second.taken(turned[1]) if node.attributes.get_int("transB", 0) else second
        if left.terms and right.terms:
            return None
        made = left.product(right.more, False) if not right.terms else right.product(left.more, True)
        made = made.times(np.array(node.attributes.get_float("alpha", 1.0)))
        if len(node.inputs) < 3 or node.inputs[2] is None:
            return [made]
        added = self._of(node.inputs[2])
        return None if added is None else [made.plus(added.times(np.array(node.attributes.get_float("beta", 1.0))))]

    def _summed(self, node: ir.Node, first: _Map) -> list[_Map] | None:
        axes = axes_of(node, self._opset, first.more.ndim)
        if axes is None or isinstance(axes, Dynamic) or not axes:
            return None
        keep = keepdims(node)
        terms = {source: term.sum(tuple(axis + 1 for axis in axes), keepdims=keep) for source, term in first.terms.items()}
        return [_Map(first.more.sum(tuple(axes), keepdims=keep), terms)]


_MOVED = {"Concat", "Expand", "Gather", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"}
_FOLLOWED = frozenset({"Add", "Div", "Gemm", "Identity", "MatMul", "Mul", "Neg", "ReduceSum", "Sub", *_MOVED})
_BINARY = frozenset({"Add", "Sub", "Mul", "Div", "MatMul", "Gemm"})


def _source(value: ir.Value, most: int) -> _Map | None:
    dims = static_dims(value)
    if dims is None or not 0 < math.prod(dims) <= most or value.dtype is None or not value.dtype.is_floating_point():
        return None
    size = math.prod(dims)
    return _Map(np.zeros(dims), {value: np.eye(size).reshape(size, *dims)})


def _moved(make: object, parts: list[_Map]) -> list[_Map]:
    starts = np.cumsum([0, *(part.more.size for part in parts)])
    places = [np.arange(part.more.size).reshape(part.more.shape) + start for part, start in zip(parts, starts, strict=False)]
    assert callable(make)
    sources = {source: len(term) for part in parts for source, term in part.terms.items()}
    terms = {
        source: np.concatenate(
            [part.terms.get(source, np.zeros((size, *part.more.shape))).reshape(size, -1) for part in parts], axis=1
        )
        for source, size in sources.items()
    }
    whole = _Map(np.concatenate([part.more.reshape(-1) for part in parts]), terms)
    return [whole.taken(index) for index in make(places)]


def _matrix(found: list[_Map], sources: list[ir.Value], widths: list[int]) -> np.ndarray:
    """Return [elements of sources, elements made of them]."""
    count = sum(one.more.size for one in found)
    rows = [
        np.concatenate(
            [one.terms[source].reshape(width, -1) if source in one.terms else np.zeros((width, one.more.size)) for one in found], 1
        )
        if found
        else np.zeros((width, 0))
        for source, width in zip(sources, widths, strict=True)
    ]
    return np.concatenate(rows).reshape(sum(widths), count)


def _more(found: list[_Map]) -> np.ndarray:
    return np.concatenate([one.more.reshape(-1) for one in found]) if found else np.zeros(0)
