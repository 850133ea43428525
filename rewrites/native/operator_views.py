"""Represents an operator and its operands for translators, and reorders and merges the axes of views."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import const_array, is_read
from rewrites.native.body import Body
from rewrites.native.operations import Op
from rewrites.native.plan import PlanRefused
from rewrites.native.views import View, constant_elements, dense_strides, move_elements

__all__ = [
    "Translator",
    "TranslatorCall",
    "as_matrices",
    "merge_axes_last",
    "permute_axes",
    "restore_axes",
    "row_view",
    "stack_rows",
]


@dataclass(frozen=True)
class TranslatorCall:
    """One operator to translate: its node, and the body that collects the steps."""

    node: ir.Node
    body: Body

    @property
    def opset(self) -> int:
        """Return the version of the standard operator set."""
        return self.body.opset

    def value(self, index: int) -> ir.Value | None:
        """Return input ``index``; None if the input is absent."""
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def has(self, index: int) -> bool:
        """Return True if input ``index`` is present."""
        return self.value(index) is not None

    def view(self, index: int) -> View:
        """Return the view of input ``index``. Raise PlanRefused if the input is absent."""
        value = self.value(index)
        if value is None:
            raise self.refuse("NATIVE-FORM", f"input {index} is missing")
        return self.body.view(value)

    @property
    def views(self) -> list[View]:
        """Return the views of all inputs."""
        return [self.view(index) for index in range(len(self.node.inputs))]

    def known(self, index: int) -> np.ndarray | None:
        """Return the elements of input ``index``, or None if they are unknown or may depend on a free size."""
        numbers = self.sizes(index)
        has_sample = (
            numbers is not None and const_array(self.value(index)) is None and any(map(self.body.free.is_free, numbers.flat))
        )
        return None if has_sample else numbers

    def sizes(self, index: int) -> np.ndarray | None:
        """Return the elements of input ``index``, or None if they are unknown.

        If the elements are sizes, the result contains a sample number for each free size (``FreeSizes``).
        """
        value = self.value(index)
        array = const_array(value)
        view = None if value is None or array is not None else self.body.views.get(value)
        return array if view is None or view.buffer.array is None or view.truth else constant_elements(view)

    def only_first_output(self) -> None:
        """Raise PlanRefused if anything except the first output is read."""
        if any(value.name and is_read(value) for value in self.node.outputs[1:]):
            raise self.refuse("NATIVE-FORM", "an output other than its first is read")

    def refuse(self, code: str, detail: str) -> PlanRefused:
        """Return a PlanRefused with a reason why the node cannot be translated. The caller raises it."""
        name = f" '{self.node.name}'" if self.node.name else ""
        return PlanRefused(code, f"{self.node.op_type}{name}: {detail}")


Translator = Callable[[TranslatorCall], Sequence[View]]
"""A function that adds the steps of an operator to the body and returns the views of its outputs, in order."""


def merge_axes_last(body: Body, view: View, axes: Sequence[int]) -> View:
    """Merge ``axes`` of ``view`` into one axis, and put it last.

    Copy the elements unless they are contiguous along this axis.
    """
    other_axes = [axis for axis in range(len(view.shape)) if axis not in axes]
    permuted = permute_axes(view, [*other_axes, *axes])
    shape = (*permuted.shape[: len(other_axes)], math.prod(view.shape[axis] for axis in axes))
    (merged,) = move_elements(permuted, lambda addresses: [addresses.reshape(shape)]) or [np.empty(0)]
    if isinstance(merged, View) and (shape[-1] == 1 or merged.strides[-1] in (0, 1)):
        return merged
    return body.reshaped(permuted, shape)


def restore_axes(result: View, shape: Sequence[int], axes: Sequence[int]) -> View:
    """Undo ``merge_axes_last`` for the result of an operation on the merged view.

    Args:
        result: The dense result, whose last axis is the merged one.
        shape: The shape to restore.
        axes: The axes of ``shape`` that ``merge_axes_last`` merged.
    """
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    order = [*rest, *axes]
    strides = dict(zip(order, dense_strides([shape[axis] for axis in order]), strict=True))
    return View(result.buffer, tuple(shape), tuple(strides[axis] for axis in range(len(shape))), result.offset)


def permute_axes(view: View, order: Sequence[int]) -> View:
    """Return the view with permuted axes. ``order`` lists the old axes, like ``perm`` of Transpose."""
    shape = tuple(view.shape[axis] for axis in order)
    return View(view.buffer, shape, tuple(view.strides[axis] for axis in order), view.offset, view.truth)


def as_matrices(body: Body, view: View, batches: int, rows: int) -> View:
    """Return ``view`` as a batch of matrices.

    Keep the first ``batches`` axes, merge the next ``rows`` axes into the rows, and merge the other axes into the columns.
    """
    split = batches + rows
    shape = (*view.shape[:batches], math.prod(view.shape[batches:split]), math.prod(view.shape[split:]))
    (joined,) = move_elements(view, lambda addresses: [addresses.reshape(shape)]) or [np.empty(0)]
    return joined if isinstance(joined, View) else body.reshaped(view, shape)


def row_view(view: View, axis: int, index: int) -> View:
    """Return the part of ``view`` at ``index`` along ``axis``, without this axis."""
    shape, strides = (*view.shape[:axis], *view.shape[axis + 1 :]), (*view.strides[:axis], *view.strides[axis + 1 :])
    return View(view.buffer, shape, strides, view.offset + index * view.strides[axis], view.truth)


def stack_rows(body: Body, rows: Sequence[View], axis: int, reverse: bool = False) -> View:
    """Stack ``rows`` along the new axis ``axis``. If ``reverse`` is True, stack them in reverse order.

    A single row is not copied.
    """
    rows = rows[::-1] if reverse else rows
    first = rows[0]
    axis %= len(first.shape) + 1
    shape = (*first.shape[:axis], len(rows), *first.shape[axis:])
    if len(rows) == 1:
        return View(first.buffer, shape, (*first.strides[:axis], 0, *first.strides[axis:]), first.offset, first.truth)
    result = body.new_buffer(shape, first)
    for index, row in enumerate(rows):
        body.emit(Op.COPY, row_view(result, axis, index), body.as_type(row, first.buffer.dtype))
    return result
