"""What older releases of onnxruntime have: opsets, IR versions and kernels on the CPU, out of the table beside this file."""

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
    """A minor release of onnxruntime, and the newest opset and IR version it loads.

    ``ml``: the newest version of ``ai.onnx.ml``; ``place``: that in the table.
    """

    version: str
    opset: int
    ml: int
    ir_version: int
    place: int = field(repr=False)

    def __str__(self) -> str:
        return f"onnxruntime {self.version}"

    def has_kernel(self, domain: str, op_type: str, since: int, types: Mapping[str, str]) -> bool:
        """Whether a CPU runs an operator as it is since version ``since`` of its domain, with its type variables.

        Of float16 it is enough to run float: onnxruntime casts around those.
        """
        table = _table()
        for first, last, variables, earliest, latest in table["kernels"].get(f"{domain}:{op_type}", ()):
            # as onnxruntime's registry has it: one without an end is for its first version alone
            fits = first == since or (last is not None and first < since <= last)
            if (
                fits
                and earliest <= self.place <= latest
                and all(_takes(types.get(name), places) for name, places in variables.items())
            ):
                return True
        return False


def _takes_all(types: Mapping[str, str], variables: Mapping[str, int]) -> bool:
    return all(_takes(types.get(name), places) for name, places in variables.items())


def _takes(given: str | None, places: int) -> bool:
    table = _table()
    taken = {table["types"][place] for place in table["lists"][places]}
    return given is None or given in taken or (given == "tensor(float16)" and "tensor(float)" in taken)


@cache
def known_runtimes() -> Mapping[str, Runtime]:
    """Return the releases in the table by version, the oldest first."""
    releases = enumerate(_table()["releases"])
    return {each["version"]: Runtime(**each, place=place) for place, each in releases}


def runtime_named(version: Any) -> Runtime | None:
    """Return the release of a version such as ``1.17`` or ``1.17.3``; None of None. Raises OptionError for what is no known one."""
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
