"""Folders of test data as onnx writes them: ``input_0.pb``, ``output_0.pb`` and so on, alone or in folders ``test_data_set_0``."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from ortscan.base.paths import is_path
from ortscan.running.specs import Spec
from rewrites.base.errors import ModelFileError

__all__ = ["is_test_data", "read_test_data"]

_FILE = re.compile(r"(input|output)_(\d{1,6})\.pb")
_MOST_FOLDERS = 10_000
_MOST_BYTES = 2**31


def is_test_data(path: object) -> bool:
    """Whether ``path`` is that of a folder."""
    try:
        return is_path(path) and Path(path).is_dir()
    except (OSError, ValueError):
        return False


def read_test_data(
    path: str | os.PathLike[str], inputs: Sequence[Spec], outputs: Sequence[Spec]
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the inputs and the recorded outputs of each set, by name. ``inputs``: all that files may be for, in order.

    Raises:
        ModelFileError: there is no such file in the folder, or one cannot be read, or is for an input or output that there is not.
    """
    folder = Path(path)
    folders = [one for one in sorted(folder.iterdir(), key=_number) if one.is_dir() and _files_in(one)][:_MOST_FOLDERS]
    if _files_in(folder):
        folders = [folder]
    if not folders:
        raise ModelFileError(f"{folder} holds no input_0.pb, and neither do folders in it")
    return [_one_set(one, inputs, outputs) for one in folders]


def _number(path: Path) -> tuple[int, str]:
    digits = re.search(r"(\d{1,9})$", path.name)
    return int(digits[1]) if digits else 0, path.name


def _files_in(folder: Path) -> dict[tuple[str, int], Path]:
    found = {(match[1], int(match[2])): file for file in folder.iterdir() if (match := _FILE.fullmatch(file.name))}
    return found if any(kind == "input" for kind, _ in found) else {}


def _one_set(folder: Path, inputs: Sequence[Spec], outputs: Sequence[Spec]) -> tuple[dict[str, Any], dict[str, Any]]:
    read: Mapping[str, dict[str, Any]] = {"input": {}, "output": {}}
    for (kind, position), file in sorted(_files_in(folder).items()):
        specs = inputs if kind == "input" else outputs
        if position >= len(specs):
            raise ModelFileError(f"{file} is for {kind} {position}, and the model has {len(specs)}")
        read[kind][specs[position].name] = _value(file, specs[position])
    return read["input"], read["output"]


def _value(file: Path, spec: Spec) -> Any:
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
