"""Represents values during compilation as strided views of buffers, so that moving elements is free."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

import numpy as np

from rewrites.native.operations import BOOL, FLOAT, words_of

__all__ = [
    "Buffer",
    "GrowingState",
    "Origin",
    "View",
    "broadcast",
    "constant_elements",
    "dense_strides",
    "move_elements",
    "view_of_addresses",
    "view_of_buffer",
    "view_of_rows",
]

_LIMIT = 1 << 24
"""For views of at most this many elements, the compiler computes all addresses to follow a movement."""


class Origin(Enum):
    """The origin of the elements of a buffer, such as a scan input (SCANNED) or a step (COMPUTED)."""

    SCANNED = auto()
    CAPTURED = auto()
    CONSTANT = auto()
    OLD = auto()
    COMPUTED = auto()
    STEP_NUMBER = auto()


@dataclass(eq=False)
class Buffer:
    """``size`` contiguous elements.

    ``index``: the index of the input or state whose elements the buffer holds. ``array``: the elements of a constant.
    """

    origin: Origin
    size: int
    index: int = 0
    array: np.ndarray | None = None
    dtype: int = FLOAT

    @property
    def words(self) -> int:
        """Return the size of the buffer in the workspace, in words."""
        return self.size * words_of(self.dtype)


@dataclass(frozen=True)
class View:
    """Elements of a buffer, addressed by an offset and a stride for each axis.

    Args:
        truth: True if the elements are bools, stored as 0 and 1 in the type of the buffer.
        narrow: The integer type if the elements are 8-bit integers that are stored as floats, else None. Operators that move
            elements do not pass it on, so a loop whose body moves 8-bit integers gets no plan.
    """

    buffer: Buffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    truth: bool = False
    narrow: int | None = None

    @property
    def dtype(self) -> int:
        """Return the element type that the value has in the model."""
        return BOOL if self.truth else self.narrow or self.buffer.dtype

    @property
    def count(self) -> int:
        """Return the number of elements, including repeated ones."""
        return math.prod(self.shape)

    @property
    def is_dense(self) -> bool:
        """Return True if the elements are contiguous in the order of the view."""
        return all(
            size == 1 or stride == own
            for size, stride, own in zip(self.shape, self.strides, dense_strides(self.shape), strict=True)
        )

    @property
    def is_whole(self) -> bool:
        """Return True if the view is the whole buffer, in the order of the buffer."""
        return self.offset == 0 and self.count == self.buffer.size and self.is_dense


@dataclass(frozen=True)
class GrowingState:
    """A state to which each step adds ``rows`` rows along ``axis``.

    Args:
        index: The index of the state.
        old: The view of the state before the step.
        new: The view of the state after the step.
        in_place: True if the step only adds rows to the old state. False if it also computes the other rows.
    """

    index: int
    axis: int
    rows: int
    old: View
    new: View
    in_place: bool

    def is_like(self, view: View) -> bool:
        """Return True if ``view`` is a whole buffer whose elements are in the order of the state."""
        return (view.strides, view.offset, view.buffer.size) == (self.new.strides, 0, self.new.buffer.size)

    def split(self, joined: View) -> tuple[View, View]:
        """Return the old rows and the added rows of ``joined``, a view of the length after the step."""
        length, stride = self.old.shape[self.axis], joined.strides[self.axis]
        shapes = [(*joined.shape[: self.axis], size, *joined.shape[self.axis + 1 :]) for size in (length, self.rows)]
        return replace(joined, shape=shapes[0]), replace(joined, shape=shapes[1], offset=joined.offset + length * stride)


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor of the shape ``shape``."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def view_of_buffer(buffer: Buffer, shape: Sequence[int], *, truth: bool = False) -> View:
    """Return the view of a whole buffer."""
    return View(buffer, tuple(shape), dense_strides(shape), 0, truth)


def view_of_rows(whole: View, axis: int) -> View:
    """Return a view of the shape of ``whole``, a whole buffer, whose outermost axis in memory is ``axis``."""
    length, *others = (whole.shape[axis], *whole.shape[:axis], *whole.shape[axis + 1 :])
    outer, *strides = dense_strides((length, *others))
    return replace(whole, strides=(*strides[:axis], outer, *strides[axis:]))


def broadcast(view: View, shape: Sequence[int]) -> View:
    """Return ``view`` broadcast to ``shape``. The strides of repeated axes are 0."""
    new = len(shape) - len(view.shape)
    strides = (*[0] * new, *(0 if own == 1 else stride for own, stride in zip(view.shape, view.strides, strict=True)))
    return View(view.buffer, tuple(shape), strides, view.offset, view.truth)


def move_elements(view: View, make: Callable[[np.ndarray], Sequence[np.ndarray]]) -> list[View | np.ndarray] | None:
    """Move the elements of ``view`` by ``make``, a numpy function that only moves elements.

    ``make`` is called with an array of the addresses of the elements, and returns arrays of addresses. Return a view for each of
    these arrays, or the array itself if strides cannot express it. Return None if ``view`` has too many elements.
    """
    if view.count > _LIMIT:
        return None
    return [view_of_addresses(view, np.asarray(made)) for made in make(_addresses(view))]


def view_of_addresses(view: View, addresses: np.ndarray) -> View | np.ndarray:
    """Return a view of the elements at ``addresses`` in the buffer of ``view``.

    Return ``addresses`` itself if no offset and strides give these addresses.
    """
    if addresses.size == 0:
        return View(view.buffer, addresses.shape, dense_strides(addresses.shape), 0, view.truth)
    first = int(addresses.reshape(-1)[0])
    axes = range(addresses.ndim)
    seconds = (tuple(min(1, addresses.shape[axis] - 1) if axis == other else 0 for other in axes) for axis in axes)
    strides = tuple(int(addresses[second]) - first for second in seconds)
    grid = View(view.buffer, addresses.shape, strides, first, view.truth)
    return grid if np.array_equal(_addresses(grid), addresses) else addresses


def constant_elements(view: View) -> np.ndarray:
    """Return the elements of ``view``, whose buffer must be a constant, as an array."""
    assert view.buffer.array is not None
    strides = [view.buffer.array.itemsize * stride for stride in view.strides]
    return np.array(np.lib.stride_tricks.as_strided(view.buffer.array[view.offset :], view.shape, strides))


def _addresses(view: View) -> np.ndarray:
    """Return the address of each element of a view in its buffer."""
    addresses = np.full(view.shape, view.offset, np.int64)
    for axis, (size, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        addresses += (np.arange(size, dtype=np.int64) * stride).reshape(size, *[1] * (len(view.shape) - axis - 1))
    return addresses
