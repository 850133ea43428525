"""Pack arrays into the slots of the op and unpack them, in the layout of ``rewrites.python_ops.wire``.

The slots are the op's inputs or outputs: a tensor for each element type, which holds all arrays of this type.

onnxruntime-extensions reads ``shape`` and ``flatten().tolist()`` of each result and copies the elements from the list. For a numpy
array, ``tolist`` creates Python objects, which costs about 64 ns an element and loses the type. ``ArrayResult.tolist`` therefore
returns the array itself, which the library copies directly. Strings are still passed as lists.
"""

import functools
import importlib
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from rewrites.python_ops.wire import META, SLOTS, Port, is_packed, meta_length, needs_shapes

__all__ = ["ArrayResult", "arrays_of", "dtype_of", "slots_of", "slots_of_failure", "takes_array_results"]


class ArrayResult:
    """A result that the library copies directly. The array is contiguous and has the declared type."""

    __slots__ = ("_array", "shape")

    def __init__(self, array: np.ndarray) -> None:
        self.shape = array.shape
        self._array = array

    def flatten(self) -> "ArrayResult":
        """Return this object."""
        return self

    def tolist(self) -> object:
        """Return the array, or a list of strings."""
        return self._array.reshape(-1).tolist() if self._array.dtype == object else self._array


def takes_array_results(declared: Any) -> bool:
    """Return True if the library accepts results of type ``ArrayResult``.

    Some versions of the library may need numpy arrays. To find out, this function calls the library's Python code with two results
    of type ``ArrayResult``: one with numbers and one with strings. ``declared`` is the library's object for the op.
    """
    results = (ArrayResult(np.zeros((2, 3), np.int8)), ArrayResult(np.array(["x"], object)))
    body, declared.body = declared.body, lambda **_: results
    try:
        invoke = importlib.import_module("onnxruntime_extensions._ocos")._on_pyop_invocation
        _, shape, numbers, _, texts = invoke(declared._id, [], {})
        return tuple(shape) == (2, 3) and isinstance(numbers, np.ndarray) and texts == ["x"]
    except Exception:  # plain arrays always work
        return False
    finally:
        declared.body = body


_SLOT_TYPES: dict[str, np.dtype] = {
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "bool": np.dtype(np.bool_),
    "string": np.dtype(object),
}
_WIDE = {"float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz", "float8e5m2": "float8_e5m2"}
_WIDE["float8e5m2fnuz"] = "float8_e5m2fnuz"


def dtype_of(kind: str) -> np.dtype:
    """Return the numpy or ml_dtypes type of an element type."""
    if kind in _SLOT_TYPES:
        return _SLOT_TYPES[kind]
    name = _WIDE.get(kind, kind)
    wide: np.dtype = np.dtype(getattr(ml_dtypes, name, name))
    return wide


def arrays_of(slots: Sequence[np.ndarray], ports: Sequence[Port]) -> list[np.ndarray]:
    """Return the inputs of a call, unpacked from its slots."""
    by_slot = dict(zip(SLOTS, slots, strict=True))
    packed = [is_packed(ports, port.slot, results=False) for port in ports]
    shapes = iter(())
    if needs_shapes(ports):
        count = sum(port.rank for port, is_in_pack in zip(ports, packed, strict=True) if is_in_pack)
        sizes = by_slot[META][:count].tolist()
        by_slot[META] = by_slot[META][count:]
        shapes = iter(sizes)
    at = dict.fromkeys(SLOTS, 0)
    values = []
    for port, is_in_pack in zip(ports, packed, strict=True):
        value = by_slot[port.slot]
        if is_in_pack:
            shape = [next(shapes) for _ in range(port.rank)]
            start = at[port.slot]
            at[port.slot] = end = start + int(np.prod(shape, dtype=np.int64))
            value = value[start:end].reshape(shape)
        values.append(value.astype(dtype_of(port.kind)) if port.slot != port.kind else value)
    return values


def slots_of(results: Sequence[object], ports: Sequence[Port]) -> list[np.ndarray]:
    """Pack ``results`` into the slots of the op, and return the slots.

    Raise ValueError if the number of results or of their dimensions is wrong, and numpy's exception if a type does not fit.
    """
    if len(results) != len(ports):
        raise ValueError(f"{len(results)} results were returned, but {len(ports)} are declared")
    parts: dict[str, list[np.ndarray]] = {slot: [] for slot in SLOTS}
    facts: list[int] = []
    at = {**dict.fromkeys(SLOTS, 0), META: meta_length(ports)}
    for number, (result, port) in enumerate(zip(results, ports, strict=True)):
        array = _fitting(result, port, number)
        if is_packed(ports, port.slot, results=True):
            facts += [at[port.slot], at[port.slot] + array.size, *array.shape]
            at[port.slot] += array.size
            array = array.reshape(-1)
        else:
            facts += [0] * array.ndim
        parts[port.slot].append(array)
    parts[META].insert(0, np.array(facts, np.int64))
    return [_joined(parts[slot], dtype_of(slot)) for slot in SLOTS]


def slots_of_failure(number: int) -> list[np.ndarray]:
    """Return the slots of a failed call. ``number`` is the number of its exception."""
    slots = [np.empty(0, dtype_of(slot)) for slot in SLOTS]
    slots[SLOTS.index(META)] = np.zeros((1, number), np.int64)
    return slots


def _fitting(result: object, port: Port, number: int) -> np.ndarray:
    array = np.asarray(result)
    if array.ndim != port.rank:
        raise ValueError(f"result {number} has {array.ndim} dimensions, but {port.rank} are declared")
    if port.slot == "string":
        return np.array([_text(item) for item in array.reshape(-1).tolist()], object).reshape(array.shape)
    if array.dtype == object:
        raise TypeError(f"result {number} is no array of numbers")
    if port.kind != port.slot:
        array = array.astype(dtype_of(port.kind))
    return np.ascontiguousarray(array.astype(dtype_of(port.slot), copy=False)).reshape(array.shape)


def _text(item: object) -> str:
    text = item.decode() if isinstance(item, bytes) else str(item)
    text.encode()
    if "\0" in text:
        raise ValueError("a string with a null character cannot be returned")
    return text


@functools.cache
def _nothing(dtype: np.dtype) -> np.ndarray:
    return np.empty(0, dtype)


def _joined(parts: Sequence[np.ndarray], dtype: np.dtype) -> np.ndarray:
    if not parts:
        return _nothing(dtype)
    return parts[0] if len(parts) == 1 else np.concatenate(parts).astype(dtype, copy=False)
