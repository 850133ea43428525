"""Read a loop's body as polynomials of its sources.

A source is a state, a scanned tensor, or a product of activations. If nodes before the loop compute a scanned tensor as a linear
map of another tensor, as an input projection does, this other tensor is the source instead. Only floating-point values are read as
features. A condition may be assumed to be true or false. Values that depend on the condition are then read under this assumption.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import rank_of
from rewrites.loops import ScanInput, ScanView, State
from rewrites.ops.traits import operators
from rewrites.recurrences.cells.cell import source_of
from rewrites.recurrences.cells.features import Features
from rewrites.recurrences.cells.linear_map import LinearMap
from rewrites.recurrences.cells.operators.constant_products import PRODUCTS
from rewrites.recurrences.cells.operators.elementwise import ELEMENTWISE
from rewrites.recurrences.cells.operators.feature_moves import MOVEMENT
from rewrites.recurrences.cells.polynomial import Polynomial, TooComplex
from rewrites.recurrences.cells.reading import AbstractValue, Reading
from rewrites.recurrences.constants import NUMPY, ConstantReader

__all__ = ["Interpretation", "Scanned"]

_OPERATORS = {**ELEMENTWISE, **MOVEMENT, **PRODUCTS}
_COPIES = operators("copies")
_COMBINE = frozenset({"Add", "And", "Mul", "Or", "Sub"})
_DEEPEST = 8
_WIDEST = 2048
"""The largest width of a source that is read. The matrix of a source has the square of its width as elements."""


@dataclass(frozen=True)
class Scanned:
    """A tensor ``outer`` [steps, ..., width] that is a source.

    ``reverse``: True if the loop reads the tensor from the last step to the first.
    """

    outer: ir.Value
    reverse: bool
    width: int


@dataclass
class Interpretation(Reading):
    """The abstract values of a Scan's body. ``scanned`` maps the keys of scanned sources to the sources."""

    scanned: dict[Hashable, Scanned] = field(default_factory=dict)

    @classmethod
    def of_body(
        cls,
        loop: ScanView,
        opset: int,
        assumed: Mapping[ir.Value, bool] | None = None,
        numbers: Mapping[ir.Value, np.ndarray] | None = None,
    ) -> "Interpretation":
        """Read the whole body of a loop. If this shows that two sizes are equal, read the body again.

        Args:
            loop: A loop whose scan inputs and outputs all have their steps along axis 0.
            opset: The opset of the model.
            assumed: Maps conditions to their assumed outcomes.
            numbers: Maps captured tensors to their assumed contents.
        """
        constants, same = ConstantReader(opset, numbers), dict[str, int | str]()
        while True:
            reading = cls(loop, constants, same=dict(same))
            reading._read_body(assumed or {})
            if reading.same == same:
                return reading
            same = reading.same

    def _read_body(self, assumed: Mapping[ir.Value, bool]) -> None:
        for state in self.loop.states:
            self._known[state.inner] = self._state(state)
        for scan in self.loop.scan_inputs:
            self._known[scan.inner] = self._read_scan_input(scan)
        for value, outcome in assumed.items():
            self._assume(value, outcome)
        for node in self.loop.body:
            self._read(node, self._known)
            for value in node.outputs:
                if value in assumed:
                    self._assume(value, assumed[value])

    def _assume(self, value: ir.Value, outcome: bool) -> None:
        self._known[value] = np.full((1,) * (rank_of(value) or 0), outcome)
        self.decided.add(value)

    def _read(self, node: ir.Node, known: dict[ir.Value, AbstractValue]) -> None:
        read = _OPERATORS.get(node.op_type)
        results: Sequence[AbstractValue] | None = None
        if node.domain == "":
            try:
                results = self._read_assumed(node) or (None if read is None else read(self, node))
            except TooComplex:
                results = None
        known.update(zip(node.outputs, results or [None] * len(node.outputs), strict=True))

    def _read_assumed(self, node: ir.Node) -> Sequence[AbstractValue] | None:
        """Read a node whose result follows from an assumed condition. Return None for any other node."""
        if not any(value in self.decided for value in node.inputs):
            return None
        operands = [self.abstract(value) for value in node.inputs]
        first, output = operands[0], node.outputs[0]
        if node.op_type == "Where" and node.inputs[0] in self.decided and isinstance(first, np.ndarray):
            return self._read_chosen_branch(node, operands[1 if first.item() else 2])
        outcome: np.ndarray | None = None
        if node.op_type in _COMBINE:
            arrays = [operand.reshape(()) for operand in operands if isinstance(operand, np.ndarray) and operand.size == 1]
            outcome = NUMPY[node.op_type](*arrays) if len(arrays) == 2 == len(operands) else None
        elif isinstance(first, np.ndarray) and node.op_type in _COPIES:
            outcome = first
        elif isinstance(first, np.ndarray) and node.op_type == "Not":
            outcome = ~first
        elif isinstance(first, np.ndarray) and node.op_type == "Cast":
            to = ir.DataType(node.attributes.get_int("to", 0))
            outcome = first.astype(to.numpy()) if to == ir.DataType.BOOL or to.is_floating_point() or to.is_integer() else None
        if outcome is None:
            return None
        self.decided.add(output)
        return [np.asarray(outcome).reshape((1,) * (rank_of(output) or 0))]

    def _read_chosen_branch(self, node: ir.Node, chosen: AbstractValue) -> Sequence[AbstractValue] | None:
        """Return the abstract value of the operand that a Where chooses.

        ``chosen`` is this abstract value. Return None if the Where may broadcast the operand.
        """
        branch = next((value for value in node.inputs[1:] if value is not None and self.abstract(value) is chosen), None)
        if branch is None or chosen is None or rank_of(branch) != rank_of(node.outputs[0]):
            return [chosen] if isinstance(chosen, np.ndarray) and chosen.size == 1 else None
        return None if isinstance(chosen, Features) and _may_be_broadcast(chosen, node.outputs[0]) else [chosen]

    @property
    def inputs(self) -> list[tuple[Hashable, Scanned]]:
        """Return the scanned sources of the body's scan inputs, each as a tuple (key, source)."""
        slices = [self.features(scan.inner) for scan in self.loop.scan_inputs]
        used = {key for features in slices if features is not None for run in features.runs for key in run.affine.terms}
        return [(key, scanned) for key, scanned in self.scanned.items() if key in used]

    def _state(self, state: State) -> Features | None:
        value = state.inner
        shape, after = value.shape, state.next.shape
        if shape is not None and after is not None and len(shape) == len(after) > 0 and isinstance(after[-1], int):
            value = ir.Value(name=value.name, type=value.type, shape=ir.Shape([*shape.dims[:-1], after[-1]]))
        return self._source(source_of(state), value, 0)

    def _source(self, key: Hashable, value: ir.Value, skipped: int) -> Features | None:
        """Make ``value`` a source with the key ``key``, and return its features.

        Return None if the type or shape of ``value`` is unsuitable. ``skipped``: 1 if the first axis of ``value`` is the steps
        axis, 0 if ``value`` is the value of a single step.
        """
        rank = rank_of(value)
        if rank is None or rank <= skipped or value.dtype is None or not value.dtype.is_floating_point():
            return None
        assert value.shape is not None
        *lead, width = self.sizes(value.shape)
        if not isinstance(width, int) or not 0 < width <= _WIDEST:
            return None
        self.dims[key] = tuple(lead[skipped:])
        return Features(tuple(lead), (width,), (Polynomial(LinearMap.source(key, width)),))

    def _read_scan_input(self, scan: ScanInput) -> Features | None:
        whole = self._read_outside(scan.outer, scan, 0)
        if whole is None or rank_of(scan.inner) is None:
            return None
        return Features(whole.dims[1:], whole.shape, whole.runs)

    def _read_outside(self, value: ir.Value, scan: ScanInput, depth: int) -> Features | None:
        """Read ``value``, the tensor that ``scan`` scans, or a tensor from which nodes compute that tensor.

        ``depth``: the number of these nodes. The first leading axis of the returned features is the steps axis.
        """
        node = value.producer()
        if node is not None and depth < _DEEPEST and node.graph is self.loop.node.graph:
            inside: dict[ir.Value, Features] = {}
            for operand in node.inputs:
                if operand is not None and operand not in self._known and self.constants.of(operand) is None:
                    features = self._read_outside(operand, scan, depth + 1)
                    if features is None:
                        break
                    inside[operand] = features
            else:
                self._known.update(inside)
                self._read(node, self._known)
                for operand in inside:
                    del self._known[operand]
                results = {output: self._known.pop(output) for output in node.outputs}
                result = results[value]
                if isinstance(result, Features) and self._is_affine_here(result, scan):
                    return result
        key = ("scanned", value.name, scan.reverse)
        features = self._source(key, value, 1)
        if features is not None:
            self.scanned[key] = Scanned(value, scan.reverse, features.width)
        return features

    def _is_affine_here(self, features: Features, scan: ScanInput) -> bool:
        """Return True if ``features`` are a linear map of sources that have the leading axes of ``scan``.

        The leading axes of a source in one step are compared with those of the body value that ``scan`` provides.
        """
        whole = features.whole()
        if whole is None or not whole.is_affine or scan.inner.shape is None or features.lead != len(scan.inner.shape):
            return False
        lead = self.sizes(scan.inner.shape)[:-1]
        return all(list(self.dims.get(key, ())) == lead and None not in lead for key in whole.affine.terms)


def _may_be_broadcast(branch: Features, result: ir.Value) -> bool:
    """Return True if a Where that chooses ``branch`` and outputs ``result`` may broadcast ``branch``.

    This is so if an axis has size 1 in ``branch``, but may have another size in ``result``.
    """
    sizes = (*branch.dims, *branch.shape)
    dims = [None] * len(sizes) if result.shape is None else result.shape.dims
    return any(size == 1 != dim for size, dim in zip(sizes, dims, strict=True))
