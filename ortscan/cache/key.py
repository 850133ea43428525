"""The name of an optimised model: everything it depends on, in one digest."""

import functools
import hashlib
import importlib.metadata
import json
from collections.abc import Mapping
from typing import Any

from ortscan.cache.code import digest_of_code
from ortscan.cache.notes import Notes

__all__ = ["key_of"]

_FORMAT = 2
_PACKAGES = ("numpy", "onnx", "onnx-ir", "onnxruntime")


def key_of(notes: Notes, digest: str, options: Mapping[str, Any], *more: Any) -> str:
    """Name what the model of ``digest`` becomes under ``options``, by this state of everything. ``more``: what else decides.

    ``notes``: where what is known of the code is kept. Raises OSError where that cannot be read.
    """
    words = [_FORMAT, _versions(), digest_of_code(notes), digest, sorted(options.items()), more]
    return hashlib.sha256(json.dumps(words, default=sorted).encode()).hexdigest()


@functools.cache
def _versions() -> tuple[str, ...]:
    return tuple(map(_version, _PACKAGES))


def _version(package: str) -> str:
    if package == "onnxruntime":
        import onnxruntime

        return f"{onnxruntime.__version__} {onnxruntime.get_build_info()}"
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "?"
