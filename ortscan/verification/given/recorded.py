"""Outputs that were recorded beside given inputs: what the framework computed that a model was exported from, say."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ortscan.running.specs import Spec
from ortscan.verification.given.inputs import Given, read_archive
from ortscan.verification.given.test_data import is_test_data, read_test_data
from rewrites.base.errors import ModelFileError

__all__ = ["read_recorded"]

_PREFIX = "out:"


def read_recorded(inputs: Given, specs: Sequence[Spec], outputs: Sequence[Spec]) -> tuple[Given, list[Mapping[str, Any]]]:
    """Return ``inputs`` as dicts, where they are a path of test data, and the recorded outputs of each set by name.

    In an .npz recorded outputs are called ``out:`` and a name, or a position.

    Raises:
        ModelFileError: a file cannot be read, or is for an input or output that there is not.
    """
    if is_test_data(inputs):
        sets = read_test_data(_path(inputs), specs, outputs)
        return [given for given, _ in sets], [recorded for _, recorded in sets]
    if isinstance(inputs, str | os.PathLike):
        known = {spec.name for spec in specs}
        keys = read_archive(inputs, lambda names: {name: name for name in names if name.startswith(_PREFIX) and name not in known})
        return inputs, [{_name(key, outputs, inputs): value for key, value in keys.items()}]
    return inputs, []


def _path(inputs: Given) -> Path:
    assert isinstance(inputs, str | os.PathLike)
    return Path(inputs)


def _name(key: str, outputs: Sequence[Spec], path: str | os.PathLike[str]) -> str:
    """Return the output that ``key`` is of."""
    wanted, names = key.removeprefix(_PREFIX), [spec.name for spec in outputs]
    if wanted in names:
        return wanted
    if wanted.isdecimal() and int(wanted) < len(names):
        return names[int(wanted)]
    raise ModelFileError(f"{os.fspath(path)} has '{key}', but the model's outputs are {', '.join(map(repr, names))}")
