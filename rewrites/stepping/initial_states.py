"""The values that the states of a loop start from, if they are no inputs of the whole model.

initial={"h": 0}       h has the sizes [batch, 8]      ->   zeros of [size 0 of x, 8], because x is [batch, 4]
initial={"cache": 0}   cache grows along its axis 1    ->   zeros of [size 0 of x, 0, 8], which are no rows
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from rewrites.base.errors import OptionError
from rewrites.base.plain_text import did_you_mean, listed, quoted, shown
from rewrites.graph.builder import Builder
from rewrites.graph.dims import equal
from rewrites.graph.values import shape_dims
from rewrites.ops.versions.emit import concat, shape_of

__all__ = ["Fill", "grown_axes", "initial_value", "read_initial"]

_LARGEST_CONSTANT = 1 << 12
"""The most elements of a filled state that is stored as a constant. Others are filled when the model runs."""


@dataclass(frozen=True)
class Fill:
    """A state filled with one number.

    Attributes:
        number: the number, as an array without axes.
        sizes: for each axis its size, or the input of the whole model and the axis with this size.
    """

    number: np.ndarray
    sizes: tuple[int | tuple[str, int], ...]

    def array(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the state for the inputs of a run."""
        sizes = [size if isinstance(size, int) else inputs[size[0]].shape[size[1]] for size in self.sizes]
        return np.full(sizes, self.number, self.number.dtype)


def grown_axes(before: ir.Value, after: ir.Value) -> list[int]:
    """Return the axes along which a state may change its size.

    ``before`` and ``after`` are the state and its next value.
    """
    if before.shape is None or after.shape is None:
        return []
    pairs = enumerate(zip(before.shape.dims, after.shape.dims, strict=True))
    return [axis for axis, (was, now) in pairs if not isinstance(was, int) and not equal(was, now)]


def read_initial(
    initial: Any,
    states: Mapping[str, str],
    scan: Mapping[str, int],
    counter: str | None,
    inputs: Mapping[str, ir.Value],
    outputs: Mapping[str, ir.Value],
) -> dict[str, np.ndarray | Fill]:
    """Return the values that states start from, by input.

    Raise OptionError if a value does not fit its state.

    Args:
        initial: the caller's numbers and arrays.
        states: the output that feeds each state, by input.
        scan: the axis of the steps in the whole model's input, by scanned input.
        counter: the input that counts the steps, or None.
        inputs: the inputs of the step.
        outputs: the outputs of the step.
    """
    if not isinstance(initial, Mapping):
        raise OptionError(f"initial must be a dict of states to numbers or arrays, such as {{'h_in': 0}}, not {shown(initial)}.")
    values: dict[str, np.ndarray | Fill] = {}
    for name, start in initial.items():
        if name not in states:
            raise OptionError(f"initial: {quoted(name)} is no state{did_you_mean(name, states)}; the states are {listed(states)}.")
        state = inputs[name]
        if not isinstance(state.type, ir.TensorType):
            raise OptionError(f"initial: the state {quoted(name)} is no tensor, so it must start from an input.")
        array = _as_array(name, start, state.type.dtype)
        if array.ndim or not _is_number(start):
            _check_shape(name, array, state)
            values[name] = array
        else:
            sources = {other: value for other, value in inputs.items() if other not in initial and other != counter}
            grown = grown_axes(state, outputs[states[name]])
            values[name] = Fill(array, _sizes(state, grown, scan, sources))
    return values


def _as_array(name: str, start: Any, dtype: ir.DataType) -> np.ndarray:
    kind = dtype.numpy() if dtype != ir.DataType.STRING else np.dtype(object)
    array = start if isinstance(start, np.ndarray) else np.asarray(start)
    is_number = _is_number(start)
    if not is_number and array.dtype.kind in "OUS" and kind.kind != "O":
        raise OptionError(f"initial: {shown(start)} for {quoted(name)} is no number or array of numbers.")
    if not is_number and array.dtype != kind:
        raise OptionError(f"initial: the array for {quoted(name)} must have the type {kind}, not {array.dtype}.")
    converted = array.astype(kind)
    if is_number and converted != array:
        raise OptionError(f"initial: {shown(start)} for {quoted(name)} is no number of the type {kind}.")
    return converted


def _is_number(start: Any) -> bool:
    return isinstance(start, int | float | bool | np.number | np.bool_)


def _check_shape(name: str, array: np.ndarray, state: ir.Value) -> None:
    sizes = [None] * array.ndim if state.shape is None else shape_dims(state.shape)
    pairs = zip(array.shape, sizes, strict=False)
    if len(sizes) != array.ndim or any(isinstance(size, int) and size != own for own, size in pairs):
        raise OptionError(f"initial: the array for {quoted(name)} has the shape {list(array.shape)}, but the state has {sizes}.")


def _sizes(
    state: ir.Value, grown: Collection[int], scan: Mapping[str, int], sources: Mapping[str, ir.Value]
) -> tuple[int | tuple[str, int], ...]:
    if state.shape is None:
        raise OptionError(f"initial: the rank of the state {quoted(state.name)} is unknown; start it from an input.")
    sizes: list[int | tuple[str, int]] = []
    for axis, dim in enumerate(shape_dims(state.shape)):
        source = 0 if axis in grown else dim if isinstance(dim, int) else _axis_with(dim, scan, sources)
        if source is None:
            size = "without a name" if dim is None else quoted(dim)
            where = f"the size {size} at axis {axis} of the state {quoted(state.name)}"
            raise OptionError(f"initial: {where} follows from no other input; start the state from an input.")
        sizes.append(source)
    return tuple(sizes)


def _axis_with(dim: str | None, scan: Mapping[str, int], sources: Mapping[str, ir.Value]) -> tuple[str, int] | None:
    """Return an input of the whole model and its axis of the size ``dim``, or None if there is none."""
    for name, value in sources.items():
        dims = [] if dim is None or value.shape is None else shape_dims(value.shape)
        if dim in dims:
            axis = dims.index(dim)
            return name, axis + (name in scan and axis >= scan[name])
    return None


def initial_value(start: np.ndarray | Fill, inputs: Mapping[str, ir.Value], b: Builder) -> ir.Value:
    """Return the value that a state starts from.

    ``inputs``: the inputs of the whole model. ``b`` collects new nodes.
    """
    if isinstance(start, np.ndarray):
        return b.const(start)
    known = [size for size in start.sizes if isinstance(size, int)]
    if len(known) == len(start.sizes) and np.prod(known) <= _LARGEST_CONSTANT:
        return b.const(np.full(known, start.number))
    parts = [b.const([size]) if isinstance(size, int) else shape_of(b, inputs[size[0]], size[1]) for size in start.sizes]
    return b.op("Expand", b.const(start.number), concat(b, parts, 0), hint="initial")
