"""The opsets, IR versions and CPU kernels of older onnxruntime releases, read from ``runtimes.json``."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from rewrites.base.errors import OptionError
from rewrites.base.plain_text import shown

__all__ = ["Runtime", "known_runtimes", "runtime_named"]

_VERSION = re.compile(r"([0-9]+\.[0-9]+)(\.[0-9]+)*")


@dataclass(frozen=True)
class Runtime:
    """A minor release of onnxruntime.

    Args:
        version: the version, such as ``1.17``.
        opset, ml, ir_version: the newest versions of the opset, of ``ai.onnx.ml`` and of the IR that the release loads.
        index: the position of the release in the table.
    """

    version: str
    opset: int
    ml: int
    ir_version: int
    index: int = field(repr=False)

    def __str__(self) -> str:
        return f"onnxruntime {self.version}"

    def has_kernel(self, domain: str, op_type: str, since: int, types: Mapping[str, str]) -> bool:
        """Return True if this release has a CPU kernel for an operator.

        A float kernel also covers float16, because onnxruntime inserts casts.

        Args:
            domain: the domain of the operator.
            op_type: the name of the operator.
            since: the version of the operator, which is the opset that introduced this version.
            types: the operand types that the kernel must support, by the names of the operator's type variables.
        """
        for first, last, variables, earliest, latest in _table()["kernels"].get(f"{domain}:{op_type}", ()):
            # as in onnxruntime's registry: a kernel without a last version covers only its first version
            is_of_version = first == since or (last is not None and first < since <= last)
            if is_of_version and earliest <= self.index <= latest and _takes_all(types, variables):
                return True
        return False


def _takes_all(types: Mapping[str, str], variables: Mapping[str, int]) -> bool:
    table = _table()
    for name, list_index in variables.items():
        allowed = {table["types"][index] for index in table["lists"][list_index]}
        kind = types.get(name)
        if not (kind is None or kind in allowed or (kind == "tensor(float16)" and "tensor(float)" in allowed)):
            return False
    return True


@cache
def known_runtimes() -> Mapping[str, Runtime]:
    """Return the releases in the table by version, the oldest first."""
    return {release["version"]: Runtime(**release, index=index) for index, release in enumerate(_table()["releases"])}


def runtime_named(version: Any) -> Runtime | None:
    """Return the release with a version such as ``1.17`` or ``1.17.3``.

    If ``version`` is None, return None. Raise OptionError if ``version`` is not in the table.
    """
    if version is None:
        return None
    match = _VERSION.fullmatch(version) if isinstance(version, str) else None
    runtime = known_runtimes().get(match[1]) if match is not None else None
    if runtime is None:
        known = list(known_runtimes())
        raise OptionError(f"runtime must be a version of onnxruntime from '{known[0]}' to '{known[-1]}', not {shown(version)}.")
    return runtime


@cache
def _table() -> dict[str, Any]:
    return dict(json.loads(files("ortscan.ort").joinpath("runtimes.json").read_text(encoding="utf-8")))
