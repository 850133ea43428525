"""What is known of an entry of the cache: JSON under its own digest, so that a damaged file of facts is none."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["read_facts", "write_facts"]


def write_facts(file: Path, facts: Mapping[str, Any]) -> None:
    """Write ``facts``. Raises OSError."""
    text = json.dumps(facts).encode()
    file.write_bytes(hashlib.sha256(text).hexdigest().encode() + b"\n" + text)


def read_facts(file: Path) -> dict[str, Any] | None:
    """Give the facts that were written to ``file``, or None where they cannot be read or are not what was written."""
    try:
        digest, _, text = file.read_bytes().partition(b"\n")
    except OSError:
        return None
    if hashlib.sha256(text).hexdigest().encode() != digest:
        return None
    facts: dict[str, Any] = json.loads(text)
    return facts
