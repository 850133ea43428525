"""Which version of the Python custom op a model needs."""

import json
from typing import TYPE_CHECKING

from rewrites.python_ops.names import METADATA

if TYPE_CHECKING:
    from ortscan.modelio import ModelLike

__all__ = ["needed_version"]


def needed_version(model: "ModelLike") -> int:
    """Return the version of the op that the metadata of ``model`` names; 0 where it names none. Raises as ``load`` does."""
    from ortscan.modelio import load

    said = load(model).model.metadata_props.get(METADATA)
    try:
        version = json.loads(said)["version"] if said else 0
    except (ValueError, LookupError, TypeError, RecursionError):
        return 0
    return version if isinstance(version, int) else 0
