"""The name of an optimised model: everything it depends on, in one digest."""

import functools
import hashlib
import importlib.metadata
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["key_of"]

_FORMAT = 1
_PACKAGES = ("numpy", "onnx", "onnx-ir", "onnxruntime")


def key_of(digest: str, options: Mapping[str, Any], *more: Any) -> str:
    """Name what the model of ``digest`` becomes under ``options``, by this version of everything. ``more``: what else decides."""
    words = [_FORMAT, _versions(), digest, sorted(options.items()), more]
    return hashlib.sha256(json.dumps(words, default=sorted).encode()).hexdigest()


@functools.cache
def _versions() -> tuple[str, ...]:
    from ortscan import __version__

    return (__version__, _stamp_of_sources(), *map(_version, _PACKAGES))


def _version(package: str) -> str:
    if package == "onnxruntime":
        import onnxruntime

        return f"{onnxruntime.__version__} {onnxruntime.get_build_info()}"
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "?"


def _stamp_of_sources() -> str:
    """Tell one state of a source checkout from the next; installed packages are told apart by version."""
    folder = Path(__file__).parents[1]
    if "site-packages" in folder.parts:
        return ""
    sources = [*folder.rglob("*.py"), *(folder.parent / "rewrites").rglob("*.py")]
    return str(max(source.stat().st_mtime_ns for source in sources))
