"""Whether a model calls the Python custom op, and which version of it."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from rewrites.python_ops.names import DOMAIN, METADATA

if TYPE_CHECKING:
    from ortscan.modelio import ModelLike

__all__ = ["calls_python", "needed_version"]


def calls_python(target: "str | os.PathLike[str] | bytes") -> bool:
    """Whether the model at a path, or in bytes, may call the op; it is not parsed. Raises OSError."""
    content = target if isinstance(target, bytes) else Path(target).read_bytes()
    return DOMAIN.encode() in content


def needed_version(model: "ModelLike") -> int:
    """Return the version of the op that the metadata of ``model`` names; 0 where it names none. Raises as ``load`` does."""
    from ortscan.modelio import load

    said = load(model).model.metadata_props.get(METADATA)
    try:
        version = json.loads(said)["version"] if said else 0
    except (ValueError, LookupError, TypeError, RecursionError):
        return 0
    return version if isinstance(version, int) else 0
