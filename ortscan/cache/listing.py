"""What a store holds, entry by entry, for people: what was made of which model, and how that went."""

import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from ortscan.cache.store import Store

__all__ = ["OF", "Listed", "listed_entries"]

OF = "of"
"""The fact that says which file a model was read from; empty for one that was given as bytes."""


@dataclass(frozen=True)
class Listed:
    """One entry: its name, the file that the ``model`` was read from (empty: it was given as bytes), its bytes, and its last use.

    ``used`` is in seconds since 1970. ``verdict``: ``optimized``; ``unchanged``, there was nothing to do; ``refuted``, the result
    differed. ``said``: how the comparison ended, where there was one.
    """

    key: str
    model: str
    bytes: int
    used: float
    verdict: Literal["optimized", "unchanged", "refuted"]
    said: str


def listed_entries(store: Store, models: Collection[str] = ()) -> list[Listed]:
    """Return the entries of ``models``, or all, the last used first. Raises OSError where the folder cannot be read."""
    wanted = {os.path.realpath(model) for model in models}
    found = []
    for folder, size, used in store.folders():
        entry = store.find_in(folder)
        if entry is None or entry.facts.get("external"):  # that only says where to look
            continue
        facts = {name: value for name, value in entry.facts.items() if isinstance(value, str)}
        if wanted and os.path.realpath(facts.get(OF) or os.curdir) not in wanted:
            continue
        refuted = facts.get("refuted", "")
        verdict: Literal["optimized", "unchanged", "refuted"] = (
            "refuted" if refuted else "unchanged" if entry.model is None else "optimized"
        )
        found.append(Listed(folder.name, facts.get(OF, ""), size, used, verdict, refuted or facts.get("verified", "")))
    return sorted(found, key=lambda one: -one.used)
