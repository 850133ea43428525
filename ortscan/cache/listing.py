"""List the entries of a store for people: the source of each model, its size and its verdict."""

import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from ortscan.cache.store import Store

__all__ = ["Listed", "listed_entries"]


@dataclass(frozen=True)
class Listed:
    """An entry of the listing.

    Attributes:
        key: the name of the entry.
        model: the file that the model was read from; empty if the model was passed as bytes.
        bytes: the size of the entry.
        used: the time of its last use, in seconds since 1970.
        verdict: ``unchanged`` if there was nothing to optimise, ``refuted`` if the optimised model differs from the original.
        comparison: the result of the comparison with the original; empty without a comparison.
    """

    key: str
    model: str
    bytes: int
    used: float
    verdict: Literal["optimized", "unchanged", "refuted"]
    comparison: str


def listed_entries(store: Store, models: Collection[str] = ()) -> list[Listed]:
    """Return the entries for the model files ``models``, or all entries if ``models`` is empty.

    Sort them by last use, newest first. Raise OSError if the folder is unreadable.
    """
    wanted = {os.path.realpath(model) for model in models}
    rows = []
    for entry, size, used in store.entries():
        facts = entry.facts
        if wanted and os.path.realpath(facts.source or os.curdir) not in wanted:
            continue
        verdict: Literal["optimized", "unchanged", "refuted"] = "optimized" if entry.model else "unchanged"
        if facts.refuted:
            verdict = "refuted"
        rows.append(Listed(entry.folder.name, facts.source, size, used, verdict, facts.refuted or facts.verified))
    return sorted(rows, key=lambda row: -row.used)
