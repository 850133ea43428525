"""Read the caller's inputs, and the outputs that were recorded with them.

Inputs are dicts of arrays, an .npz file, or a folder of test data in the format of onnx. Such a folder contains ``input_0.pb``,
``output_0.pb`` and so on, either directly or in subfolders ``test_data_set_0`` and so on.
"""

import itertools
import math
import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from ortscan.base.paths import is_path
from ortscan.ort.element_types import numpy_type
from ortscan.running.specs import SessionSpec, input_specs, output_specs, overridable_names
from ortscan.verification.inputs.shapes import given_dims, given_shapes, shapes_with_dims, with_shapes
from rewrites.base.errors import ModelFileError, OptionError
from rewrites.base.plain_text import shown

__all__ = ["ChosenInputs", "Given", "read_inputs"]

_MOST_SETS, _MOST_FOLDERS = 100_000, 10_000
_MOST_BYTES = 2**31
_FILE = re.compile(r"(input|output)_(\d{1,6})\.pb")
_IN, _OUT = "in:", "out:"
_Arrays = dict[str, Any]

Given = Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | os.PathLike[str]


class ChosenInputs(NamedTuple):
    """The inputs that the caller of a comparison chose.

    Args:
        specs: the declarations of the inputs.
        sizes: the sizes of free dimensions.
        sets: the sets of values, by input; one empty set if all values are generated.
        recorded: the outputs that were recorded with each set.
    """

    specs: list[SessionSpec]
    sizes: dict[str, int]
    sets: list[_Arrays]
    recorded: list[_Arrays]

    @classmethod
    def of(cls, model: onnx.ModelProto, inputs: Given | None, shapes: Any, dims: Any) -> "ChosenInputs":
        """Return the inputs for ``model``. The other arguments are options of ``verify``.

        Raises:
            OptionError: an option is invalid, or does not fit the model.
            ModelFileError: a file of inputs cannot be read.
        """
        declared = input_specs(model.graph)
        specs, sizes = with_shapes(declared, shapes_with_dims(declared, given_shapes(shapes), given_dims(dims)))
        if inputs is None:
            return cls(specs, sizes, [{}], [])
        return cls(specs, sizes, *read_inputs(inputs, specs, overridable_names(model), output_specs(model.graph)))


def read_inputs(
    inputs: Given, specs: Sequence[SessionSpec], optional: Set[str], outputs: Sequence[SessionSpec]
) -> tuple[list[_Arrays], list[_Arrays]]:
    """Return two lists: the sets of inputs, and the recorded outputs of each set.

    Each item is a dict from names to arrays.
    If the caller passes dicts, there are no recorded outputs.

    Args:
        inputs: the caller's inputs. In an .npz file, the key of an input is its name, or ``in:`` followed by its name. The key of a
            recorded output is ``out:`` followed by its name or position. If there are keys with ``in:``, other keys of inputs are
            ignored.
        specs: the declarations of the inputs that must be fed.
        optional: the names of the inputs that may be omitted.
        outputs: the declarations of the outputs.

    Raises:
        OptionError: there is no set, a name is unknown, or a type, rank or fixed size does not fit the model.
        ModelFileError: a file cannot be read, or belongs to an input or output that the model does not have.
    """
    known = {spec.name: spec for spec in specs}
    sets: Any
    recorded: list[_Arrays] = []
    is_archive = False
    if is_path(inputs) and os.path.isdir(inputs):
        sets, recorded = map(list, zip(*_read_folder(Path(inputs), specs, outputs), strict=True))
    elif isinstance(inputs, str | os.PathLike):
        is_archive = True
        arrays, outs = _read_archive(inputs, known.keys(), optional)
        sets, recorded = [arrays], [{_output_name(key, outputs, inputs): value for key, value in outs.items()}]
    elif isinstance(inputs, Iterable) and not isinstance(inputs, Mapping | bytes | np.ndarray):
        sets = list(itertools.islice(inputs, _MOST_SETS))
        if len(sets) == _MOST_SETS:
            raise OptionError(f"inputs has {_MOST_SETS} sets or more.")
    else:
        sets = [inputs]
    if not sets:
        raise OptionError("inputs is an empty list: there is nothing to compare")
    for arrays in sets:
        if not isinstance(arrays, Mapping):
            raise OptionError(f"inputs must be a dict of arrays, a list of such dicts, or the path of an .npz, not {shown(arrays)}")
        if known and not arrays:
            where = f"{os.fspath(inputs)} has" if is_archive else "inputs has"  # type: ignore[arg-type]
            raise OptionError(f"{where} no array, but the model's inputs are {', '.join(map(repr, known))}")
    for name in itertools.chain(*sets):
        if name not in known and name not in optional:
            raise OptionError(f"inputs has '{name}', but the model's inputs are {', '.join(map(repr, known)) or 'none'}")
    return [{name: _checked(name, known.get(name), value) for name, value in arrays.items()} for arrays in sets], recorded


def _read_archive(path: str | os.PathLike[str], known: Set[str], optional: Set[str]) -> tuple[_Arrays, _Arrays]:
    """Return the inputs in an .npz file by name, and its recorded outputs by key, such as ``out:y``.

    ``known`` has the names of the inputs that must be fed, ``optional`` those of the other inputs.
    """
    if not is_path(path):
        raise ModelFileError(f"{shown(path)} is not a path")
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ModelFileError(f"{os.fspath(path)} is not an .npz file")
            names = {*known, *optional}
            recorded = [key for key in archive.files if key.startswith(_OUT) and key not in known]
            keys = {key.removeprefix(_IN): key for key in archive.files if key.startswith(_IN) and key not in names}
            keys = keys or {key: key for key in archive.files if key in names or not key.startswith(_OUT)}
            outputs = {key: _member(archive, key) for key in recorded}
            return {name: _member(archive, key) for name, key in keys.items()}, outputs
    except (OSError, ValueError, EOFError, BadZipFile, NotImplementedError, struct.error, zlib.error) as error:
        raise ModelFileError(f"{os.fspath(path)} cannot be read as .npz: {error}") from error


def _member(archive: Any, key: str) -> Any:
    """Return the array at ``key`` of an .npz file.

    Raise ValueError if the header of the array declares more bytes than the file has for the array.
    """
    member = f"{key}.npy" if f"{key}.npy" in archive.zip.namelist() else key
    with archive.zip.open(member) as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    declared, held = math.prod(shape) * dtype.itemsize, archive.zip.getinfo(member).file_size
    if declared > held:
        raise ValueError(f"the array {key!r} declares {declared} bytes but has {held}")
    return archive[key]


def _output_name(key: str, outputs: Sequence[SessionSpec], path: str | os.PathLike[str]) -> str:
    wanted, names = key.removeprefix(_OUT), [spec.name for spec in outputs]
    if wanted in names:
        return wanted
    if wanted.isdecimal() and int(wanted) < len(names):
        return names[int(wanted)]
    raise ModelFileError(f"{os.fspath(path)} has '{key}', but the model's outputs are {', '.join(map(repr, names))}")


def _read_folder(folder: Path, inputs: Sequence[SessionSpec], outputs: Sequence[SessionSpec]) -> Iterator[tuple[_Arrays, _Arrays]]:
    """Yield (inputs, recorded outputs) for each set in a folder of test data, as dicts by name."""

    def number(path: Path) -> tuple[int, str]:
        digits = re.search(r"(\d{1,9})$", path.name)
        return int(digits[1]) if digits else 0, path.name

    folders = [inner for inner in sorted(folder.iterdir(), key=number) if inner.is_dir() and _files_in(inner)][:_MOST_FOLDERS]
    if _files_in(folder):
        folders = [folder]
    if not folders:
        raise ModelFileError(f"{folder} and its subfolders contain no input_0.pb")
    for inner in folders:
        arrays: Mapping[str, _Arrays] = {"input": {}, "output": {}}
        for (kind, position), file in sorted(_files_in(inner).items()):
            specs = inputs if kind == "input" else outputs
            if position >= len(specs):
                raise ModelFileError(f"{file} is for {kind} {position}, but the model has only {len(specs)} {kind}s")
            arrays[kind][specs[position].name] = _read_value(file, specs[position])
        yield arrays["input"], arrays["output"]


def _files_in(folder: Path) -> dict[tuple[str, int], Path]:
    files = {(match[1], int(match[2])): file for file in folder.iterdir() if (match := _FILE.fullmatch(file.name))}
    return files if any(kind == "input" for kind, _ in files) else {}


def _read_value(file: Path, spec: SessionSpec) -> Any:
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise ModelFileError(f"{file} is too large")
        content = file.read_bytes()
        if spec.kind == "sequence":
            return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(content))
        if spec.optional:
            return onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
        return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(content))
    except (OSError, DecodeError, ValueError, TypeError, KeyError, NotImplementedError) as error:
        raise ModelFileError(f"{file} cannot be read as a value of '{spec.name}': {error}") from error


def _checked(name: str, spec: SessionSpec | None, value: Any) -> Any:
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
        raise OptionError(f"inputs['{name}'] is not an array: {str(error) or 'it does not fit into memory'}") from None


def _checked_array(spec: SessionSpec, value: Any) -> np.ndarray:
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
