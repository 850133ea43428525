"""What is known of a cached model, as a file: JSON under its own digest, so that a damaged file says nothing."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ortscan.cache.own_files import read_own

__all__ = ["as_bytes", "read_facts"]


def as_bytes(facts: Mapping[str, Any]) -> bytes:
    """Return what a file of ``facts`` holds."""
    text = json.dumps(facts).encode()
    return hashlib.sha256(text).hexdigest().encode() + b"\n" + text


def read_facts(file: Path) -> dict[str, Any] | None:
    """Return the facts that were written to ``file``, or None where it cannot be read, or does not hold what was written."""
    try:
        digest, _, text = read_own(file).partition(b"\n")
        if hashlib.sha256(text).hexdigest().encode() != digest:
            return None
        facts = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return None
    return facts if isinstance(facts, dict) else None
