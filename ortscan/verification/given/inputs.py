"""Inputs and shapes as the caller gave them, checked against what the model declares."""

import itertools
import math
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from zipfile import BadZipFile

import numpy as np
import onnx

from ortscan.base.paths import is_path
from ortscan.ort.element_types import numpy_type
from ortscan.running.specs import Spec
from rewrites.base.errors import ModelFileError, OptionError
from rewrites.base.plain_text import shown

__all__ = ["Given", "ranked", "read_archive", "read_inputs", "with_arrays", "with_shapes"]

_MOST_SETS = 100_000

Given = Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | os.PathLike[str]


def read_inputs(inputs: Given, specs: Sequence[Spec], optional: Iterable[str]) -> list[dict[str, Any]]:
    """The input sets, each by input name and with arrays for tensors.

    ``optional`` names the inputs that need not be fed. A path is an .npz whose keys are input names, or ``in:`` and the name
    (other keys are then left alone).

    Raises:
        OptionError: there is no set; an unknown name; a type, rank or fixed size that is not the model's.
        ModelFileError: the .npz cannot be read.
    """
    known = {spec.name: spec for spec in specs}
    optional = set(optional)
    if isinstance(inputs, str | os.PathLike):
        sets: Sequence[Mapping[str, Any]] = [_read_npz(inputs, {*known, *optional})]
    elif isinstance(inputs, Mapping):
        sets = [inputs]
    else:
        one: Any = inputs
        many = isinstance(one, Iterable) and not isinstance(one, bytes | np.ndarray)
        sets = list(itertools.islice(one, _MOST_SETS)) if many else [one]
        if len(sets) == _MOST_SETS:
            raise OptionError(f"inputs has {_MOST_SETS} sets or more.")
    if not sets:
        raise OptionError("inputs is an empty list: there is nothing to compare")
    for names in sets:
        if not isinstance(names, Mapping):
            raise OptionError(f"inputs must be a dict of arrays, a list of such dicts, or the path of an .npz, not {shown(names)}")
        if known and not names:
            where = f"{os.fspath(inputs)} holds" if isinstance(inputs, str | os.PathLike) else "inputs has"
            raise OptionError(f"{where} no array, but the model's inputs are {', '.join(map(repr, known))}")
    for names in sets:
        for name in names:
            if name not in known and name not in optional:
                raise OptionError(f"inputs has '{name}', but the model's inputs are {', '.join(map(repr, known)) or 'none'}")
    return [{name: _checked(name, known.get(name), value) for name, value in values.items()} for values in sets]


def with_shapes(specs: Sequence[Spec], shapes: Mapping[str, Sequence[int | None]]) -> tuple[list[Spec], dict[str, int]]:
    """The inputs with ranks declared by ``shapes`` where the model declares none, and the sizes of free dimensions it fixes.

    None or -1 leaves a size free.

    Raises:
        OptionError: an unknown name, another rank, another size than a fixed one, or two sizes for one dimension.
    """
    names = [spec.name for spec in specs]
    for name, dims in shapes.items():
        if any(size is not None and size < -1 for size in dims):
            raise OptionError(f"shapes gives {name!r} a negative size: {shown(list(dims))}")
        if name not in names:
            raise OptionError(f"shapes has '{name}', but the model's inputs are {', '.join(map(repr, names)) or 'none'}")
    specs = [ranked(spec, len(shapes[spec.name])) if spec.name in shapes else spec for spec in specs]
    sizes: dict[str, int] = {}
    for spec in specs:
        shape = shapes.get(spec.name, spec.dims)
        if len(shape or ()) != len(spec.dims or ()):
            raise OptionError(f"shapes gives '{spec.name}' rank {len(shape or ())}, but the model declares {len(spec.dims or ())}")
        for dim, size in zip(spec.dims or (), shape or (), strict=True):
            if size == dim or size in (None, -1):
                continue
            if isinstance(dim, int):
                raise OptionError(f"shapes gives '{spec.name}' the size {size} where the model declares {dim}")
            if sizes.setdefault(dim, int(size or 0)) != size:
                raise OptionError(
                    f"shapes gives dimension '{dim}' the sizes {sizes[dim]} and {size}; if it names two sizes alike, pass inputs"
                )
    return specs, sizes


def ranked(spec: Spec, rank: int) -> Spec:
    """``spec`` with ``rank`` anonymous dimensions, where no rank is declared."""
    return spec if spec.dims is not None else replace(spec, dims=tuple(f"{spec.name}[{axis}]" for axis in range(rank)))


def with_arrays(specs: Sequence[Spec], values: Mapping[str, Any]) -> tuple[list[Spec], dict[str, int]]:
    """The same for given arrays. Where a symbol has several sizes the first counts: onnxruntime does not mind."""
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    specs = [ranked(spec, arrays[spec.name].ndim) if spec.name in arrays else spec for spec in specs]
    sizes: dict[str, int] = {}
    for spec in specs:
        if spec.name in arrays:
            for dim, size in zip(spec.dims or (), arrays[spec.name].shape, strict=True):
                if isinstance(dim, str):
                    sizes.setdefault(dim, size)
    return specs, sizes


def _read_npz(path: str | os.PathLike[str], names: set[str]) -> dict[str, Any]:
    def choose(files: Sequence[str]) -> dict[str, str]:
        keys = {key.removeprefix("in:"): key for key in files if key.startswith("in:") and key not in names}
        return keys or {key: key for key in files if key in names or not key.startswith("out:")}

    return read_archive(path, choose)


def read_archive(path: str | os.PathLike[str], choose: Callable[[Sequence[str]], Mapping[str, str]]) -> dict[str, Any]:
    """Return arrays of an .npz by the names that ``choose`` gives to keys.

    Raises:
        ModelFileError: it cannot be read.
    """
    if not is_path(path):
        raise ModelFileError(f"{shown(path)} is not a path")
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ModelFileError(f"{os.fspath(path)} is not an .npz file")
            return {name: _member(archive, key) for name, key in choose(archive.files).items()}
    except (OSError, ValueError, EOFError, BadZipFile, NotImplementedError, struct.error, zlib.error) as error:
        raise ModelFileError(f"{os.fspath(path)} cannot be read as .npz: {error}") from error


def _member(archive: Any, key: str) -> Any:
    """Read an array whose header tells no more bytes than its file has."""
    member = f"{key}.npy" if f"{key}.npy" in archive.zip.namelist() else key
    with archive.zip.open(member) as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    told, held = math.prod(shape) * dtype.itemsize, archive.zip.getinfo(member).file_size
    if told > held:
        raise ValueError(f"the array {key!r} tells of {told} bytes and has {held}")
    return archive[key]


def _checked(name: str, spec: Spec | None, value: Any) -> Any:
    if spec is None:
        return _array(name, value)
    if spec.kind == "other" or (spec.optional and value is None):
        return value
    if spec.kind == "sequence":
        if not isinstance(value, list | tuple):
            raise OptionError(f"inputs['{spec.name}'] must be a list of arrays: the model takes {spec.declared}")
        return [_checked_array(spec, item) for item in value]
    return _checked_array(spec, value)


def _array(name: str, value: Any) -> np.ndarray:
    try:
        return np.asarray(value)
    except (ValueError, OverflowError, MemoryError) as error:
        raise OptionError(f"inputs['{name}'] is no array: {str(error) or 'it does not fit into memory'}") from None


def _checked_array(spec: Spec, value: Any) -> np.ndarray:
    array = _array(spec.name, value)
    wanted = numpy_type(spec.elem_type)
    if spec.elem_type == onnx.TensorProto.STRING:
        if array.dtype.kind not in "OSU":
            raise OptionError(f"inputs['{spec.name}'] is {array.dtype}, but the model takes strings")
        return array.astype(object)
    if array.dtype != wanted:
        raise OptionError(f"inputs['{spec.name}'] is {array.dtype}, but the model takes {wanted}")
    if spec.dims is not None and len(spec.dims) != array.ndim:
        raise OptionError(f"inputs['{spec.name}'] has rank {array.ndim}, but the model takes rank {len(spec.dims)}")
    for axis, dim in enumerate(spec.dims or ()):
        if isinstance(dim, int) and dim != array.shape[axis]:
            raise OptionError(f"inputs['{spec.name}'] has size {array.shape[axis]} in axis {axis}, but the model takes {dim}")
    return array
