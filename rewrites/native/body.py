"""Represents the body of a loop during compilation: views of its values, and steps that compute them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx_ir as ir

from rewrites.graph.type_names import type_name
from rewrites.graph.values import const_array, static_dims
from rewrites.native.free_sizes import FreeSizes, size_name
from rewrites.native.operations import BOOL, FLOAT, INT64, NARROW, NUMPY, Op, fits, has_kernel
from rewrites.native.plan import PlanRefused, Symbol
from rewrites.native.views import Buffer, GrowingState, Origin, View, broadcast, constant_elements, dense_strides, view_of_buffer

__all__ = ["Body", "BodyStep", "type_name"]

_INLINE = 256
"""The plan includes a captured constant of at most this many elements."""


@dataclass(eq=False)
class BodyStep:
    """One operation of the compiled body. Its views have the shapes over which the operation iterates.

    Args:
        target: The view of the result. In a product, its shape is [..., M, N].
        sources: The views of the operands; None if omitted. In a product: [..., M, K], [..., K, N], and [..., M, N] for an added
            term.
        immediates: Two constants of the operation, such as the epsilon of a LayerNormalization.
        indexed: For an operation that reads indices: the size and the stride of the axis from which the indices select. For TopK:
            the number of elements to find, and 1.
    """

    op: Op
    target: View
    sources: list[View | None]
    immediates: tuple[float, float] = (0.0, 0.0)
    indexed: tuple[int, int] = (1, 1)

    @property
    def operands(self) -> list[View]:
        """Return the views of the operands that are not omitted."""
        return [source for source in self.sources if source is not None]


@dataclass
class Body:
    """The state of the translation of a loop's body.

    Args:
        graph: The body.
        first_captured: The index of the first captured value among the inputs of the plan.
        free: The sizes that are known only at run time.
        captured: The outer values that the plan captures, in the order of the plan's inputs.
        nested_graphs: The graphs nested in ``graph`` that the plan computes too: branches of Ifs, and bodies of inner loops.
        enclosing_ifs: The number of Ifs around the node that is being translated.
        growing: Maps each Concat that extends a growing state to this state.
    """

    graph: ir.Graph
    opset: int
    first_captured: int
    free: FreeSizes
    views: dict[ir.Value, View] = field(default_factory=dict)
    steps: list[BodyStep] = field(default_factory=list)
    captured: dict[ir.Value, Buffer] = field(default_factory=dict)
    constants: dict[tuple[int, bytes], Buffer] = field(default_factory=dict)
    casts: dict[tuple[View, int], View] = field(default_factory=dict)
    nested_graphs: set[ir.Graph | ir.Function] = field(default_factory=set)
    enclosing_ifs: int = 0
    growing: dict[ir.Node, GrowingState] = field(default_factory=dict)

    def view(self, value: ir.Value) -> View:
        """Return the view of ``value``, which may be a constant or a captured value."""
        if value not in self.views:
            self.views[value] = self._view_of_outer_value(value)
        return self.views[value]

    def _view_of_outer_value(self, value: ir.Value) -> View:
        array = const_array(value)
        inside = self._is_inside(value)
        if array is not None and (array.size <= _INLINE or inside):
            if array.dtype in NARROW.values():
                narrow = next(dtype for dtype, kind in NARROW.items() if kind == array.dtype)
                return replace(self.constant(array.astype(np.float32)), narrow=narrow)
            if array.dtype not in NUMPY.values():
                raise PlanRefused("NATIVE-TYPE", f"the constant '{value.name}' is {array.dtype}")
            return self.constant(array)
        if inside:
            raise PlanRefused("NATIVE-TYPE", f"'{value.name}' of the body is not a readable numeric constant")
        return self._captured(value, NUMPY)

    def captured_byte_matrix(self, value: ir.Value | None) -> View | None:
        """Return the view of ``value`` if it is a captured tensor of 8-bit integers, else None.

        Only products can read this view.
        """
        if value is None or value.dtype is None or value.dtype not in NARROW or self._is_inside(value):
            return None
        if value not in self.views and const_array(value, limit=_INLINE) is None:
            self.views[value] = replace(self._captured(value, NARROW), narrow=int(value.dtype))
        view = self.views.get(value)
        return view if view is not None and view.buffer.dtype in NARROW else None

    def _is_inside(self, value: ir.Value) -> bool:
        """Return True if ``value`` belongs to the body or to a graph nested in the body."""
        producer = value.producer()
        graphs = (value.graph, None if producer is None else producer.graph)
        return any(graph is self.graph or graph in self.nested_graphs for graph in graphs if graph is not None)

    def _captured(self, value: ir.Value, kinds: Mapping[int, np.dtype]) -> View:
        if value.dtype is None or value.dtype not in kinds:
            raise PlanRefused("NATIVE-TYPE", f"'{value.name}', which the body captures, is {type_name(value.dtype)}")
        index = self.first_captured + len(self.captured)
        shape = self.dims(value, index)
        if shape is None:
            raise PlanRefused("NATIVE-SHAPE", f"the shape of '{value.name}', which the body captures, is not known")
        buffer = Buffer(Origin.CAPTURED, math.prod(shape), index, dtype=int(value.dtype))
        self.captured[value] = buffer
        return view_of_buffer(buffer, shape, truth=buffer.dtype == BOOL)

    def dims(self, value: ir.Value, index: int, first_axis: int = 0, inner: ir.Value | None = None) -> tuple[int, ...] | None:
        """Return the sizes of ``value`` from axis ``first_axis`` on, or None if its rank is unknown.

        If a size is known only at run time, the result contains a sample number for it (``FreeSizes``).

        Args:
            index: The index of ``value`` among the inputs of the plan.
            inner: The body value that holds ``value`` in a step, because it may declare more sizes as numbers. None if the sizes
                that the body declares may be wrong.
        """
        outer = None if value.shape is None else list(value.shape.dims[first_axis:])
        known = None if inner is None or inner.shape is None else list(inner.shape.dims)
        if outer is None or (known is not None and len(known) != len(outer)):
            return static_dims(inner) if inner is not None and outer is None else None
        sizes: list[int] = []
        for axis, dim in enumerate(outer):
            size = known[axis] if known is not None and isinstance(known[axis], int) else dim
            if not isinstance(size, int):
                size = self.free.number(size_name(size, index, axis), Symbol(index, axis + first_axis))
            sizes.append(size)
        return tuple(sizes)

    def constant(self, array: np.ndarray, *, truth: bool = False) -> View:
        """Return the view of a constant that holds ``array``. Equal arrays share a buffer.

        A bool array is stored as floats. ``truth``: True if the numbers 0 and 1 of ``array``, which has another type, are bools.
        """
        if array.dtype == np.bool_ and not truth:
            array, truth = array.astype(np.float32), True
        dtype = next(dtype for dtype, kind in NUMPY.items() if kind == array.dtype)
        array = np.array(array, order="C")
        new = Buffer(Origin.CONSTANT, array.size, array=array.reshape(-1), dtype=dtype)
        buffer = self.constants.setdefault((dtype, array.tobytes()), new)
        return view_of_buffer(buffer, array.shape, truth=truth)

    def number(self, number: float, dtype: int = FLOAT) -> View:
        """Return the view of a scalar constant. Raise PlanRefused if ``dtype`` cannot hold ``number``."""
        if NUMPY[dtype].kind != "f" and not float(number).is_integer():
            raise PlanRefused("NATIVE-TYPE", f"it combines {number:g} with {type_name(dtype)}")
        return self.constant(np.array(number, NUMPY[dtype]))

    def new_buffer(self, shape: Sequence[int], like: View, *, truth: bool | None = None) -> View:
        """Return the view of a new buffer of the storage type of ``like``, for example float.

        ``truth``: True if the elements of the new buffer are bools; None to copy this property from ``like``.
        """
        return _computed_buffer(shape, like.buffer.dtype, truth=like.truth if truth is None else truth)

    def new_indices(self, shape: Sequence[int]) -> View:
        """Return the view of a new INT64 buffer for indices that a step computes."""
        return _computed_buffer(shape, INT64, truth=False)

    def emit(
        self,
        op: Op,
        target: View,
        *sources: View | None,
        immediates: tuple[float, float] = (0.0, 0.0),
        indexed: tuple[int, int] = (1, 1),
    ) -> View:
        """Add a step, and return ``target``. Raise PlanRefused if the operation has no kernel for these types."""
        packed = [source for source in sources[1:2] if op == Op.GEMM]  # read as floats
        sources_read = [source for source in sources if source is not None and not any(source is each for each in packed)]
        kinds = {view.buffer.dtype for view in (target, *sources_read)}
        lacking = {kind for kind in kinds if not has_kernel(op, kind)}
        if lacking or not fits(op, target.buffer.dtype, [view.buffer.dtype for view in sources_read]):
            names = " and ".join(sorted(ir.DataType(kind).name for kind in lacking or kinds))
            raise PlanRefused("NATIVE-TYPE", f"loop plans have no {op.name} of {names}")
        self.steps.append(BodyStep(op, target, list(sources), immediates, indexed))
        return target

    def elementwise(self, op: Op, *sources: View, truth: bool = False, immediates: tuple[float, float] = (0.0, 0.0)) -> View:
        """Add an elementwise step that reads ``sources``, broadcast to one shape. Return its result.

        Bool sources are first cast to the type of the other sources. ``truth``: True if the result holds bools.
        """
        if any(source.narrow is not None for source in sources):
            raise PlanRefused("NATIVE-TYPE", f"loop plans have no {op.name} of bytes")
        kinds = {source.buffer.dtype for source in sources if not source.truth} or {source.buffer.dtype for source in sources}
        kind = kinds.pop() if len(kinds) == 1 and BOOL not in kinds else FLOAT
        sources = tuple(self.as_type(source, kind) if source.truth else source for source in sources)
        try:
            shape = np.broadcast_shapes(*(source.shape for source in sources))
        except ValueError:
            raise PlanRefused("NATIVE-SHAPE", f"the shapes {[source.shape for source in sources]} cannot be broadcast") from None
        spread = [broadcast(source, shape) for source in sources]
        return self.emit(op, self.new_buffer(shape, sources[-1], truth=truth), *spread, immediates=immediates)

    def as_type(self, view: View, dtype: int) -> View:
        """Return a view of the same values with the element type ``dtype``. Bools become 0 and 1."""
        if view.buffer.dtype == dtype:
            return view if view.narrow is None else replace(view, narrow=None)
        if view.buffer.array is not None:
            return self.constant(constant_elements(view).astype(NUMPY[dtype]), truth=view.truth)
        if (view, dtype) not in self.casts:
            self.casts[view, dtype] = self.emit(Op.CAST, _computed_buffer(view.shape, dtype, truth=view.truth), view)
        return self.casts[view, dtype]

    def copied(self, view: View) -> View:
        """Return a dense copy of the elements of ``view``."""
        if view.buffer.array is not None:
            return self.constant(constant_elements(view), truth=view.truth)
        return self.emit(Op.COPY, self.new_buffer(view.shape, view), view)

    def packed(self, view: View) -> View:
        """Return the view if it is dense, else a dense copy."""
        return view if view.is_dense else self.copied(view)

    def reshaped(self, view: View, shape: Sequence[int]) -> View:
        """Return a view of the elements of ``view`` in another shape."""
        from_dense = self.packed(view)
        return View(from_dense.buffer, tuple(shape), dense_strides(shape), from_dense.offset, view.truth)


def _computed_buffer(shape: Sequence[int], dtype: int, *, truth: bool) -> View:
    return view_of_buffer(Buffer(Origin.COMPUTED, math.prod(shape), dtype=dtype), shape, truth=truth)
