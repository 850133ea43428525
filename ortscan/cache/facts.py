"""The facts of a cache entry, and the format of their file.

The file has a digest, which detects damage, followed by JSON.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Facts", "as_bytes", "facts_from"]


@dataclass(frozen=True)
class Facts:
    """The facts of a cache entry.

    Attributes:
        source: the file that the model was read from; empty if the model was passed as bytes.
        python_ops: True if the optimised model calls Python.
        data: the locations of the external data that the optimised model refers to.
        report: the report of the optimisation, as a dictionary.
        verified: the result of the comparison with the original, in one line.
        refuted: how the optimised model differs from the original; empty if no difference is known. A model that differs is not
            used.
        key: the name of the entry.
        checksum: the checksum of the optimised model; empty if there was nothing to optimise.
    """

    source: str = ""
    python_ops: bool = False
    data: Sequence[str] = ()
    report: Mapping[str, Any] | None = None
    verified: str = ""
    refuted: str = ""
    key: str = ""
    checksum: str = ""


_TYPES = {**{name: {type(value)} for name, value in asdict(Facts()).items()}, "data": {list}, "report": {dict, type(None)}}
"""The allowed JSON types of each fact."""


def as_bytes(facts: Mapping[str, Any]) -> bytes:
    """Return the content of a file of facts."""
    text = json.dumps(facts).encode()
    return hashlib.sha256(text).hexdigest().encode() + b"\n" + text


def facts_from(content: bytes) -> Facts | None:
    """Return the facts in a file, or None if the file is damaged or was not written by ``as_bytes``."""
    digest, _, text = content.partition(b"\n")
    if hashlib.sha256(text).hexdigest().encode() != digest:
        return None
    try:
        stated = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(stated, dict) or stated.keys() != _TYPES.keys():
        return None
    is_well_formed = all(type(value) in _TYPES[name] for name, value in stated.items())
    return Facts(**stated) if is_well_formed and all(isinstance(name, str) for name in stated["data"]) else None
