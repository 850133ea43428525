"""Optimise a session's model if it is not in the cache, and store the result in the cache."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ortscan.base.temporary import TemporaryFolder
from ortscan.cache.digests import digest_of_bytes
from ortscan.cache.facts import Facts
from ortscan.cache.store import Store
from ortscan.session.applied import Applied, Prepared, unmodified
from ortscan.session.source import SessionSource
from rewrites.base.errors import OrtscanError, VerificationFailed
from rewrites.python_ops.names import DOMAIN

if TYPE_CHECKING:
    from ortscan.session.optimizing import Optimized

__all__ = ["CacheSlot", "fresh"]


@dataclass(frozen=True)
class CacheSlot:
    """The place in the cache where an optimised model will be stored.

    Attributes:
        store: the cache.
        key: the key of the entry.
        fingerprint: the digests of the original's files, from which the key was computed.
    """

    store: Store
    key: str
    fingerprint: Sequence[str]

    def may_store(self, source: SessionSource, locations: Sequence[str]) -> bool:
        """Return True if no file of the model was changed since the key was computed.

        Otherwise the result of optimising ``source`` must not be stored under the key.

        Args:
            source: the model.
            locations: the locations of external data in the model that was optimised.
        """
        with suppress(OSError, OrtscanError):
            is_same = digest_of_bytes(source.content) == self.fingerprint[0] and set(locations) <= set(source.outline.locations)
            return is_same and source.fingerprint() == self.fingerprint
        return False


def fresh(source: SessionSource, options: Mapping[str, Any], slot: CacheSlot | None) -> Prepared:
    """Optimise the model of a session, and return the model that the session opens.

    Args:
        source: the original model.
        options: the options of ``optimize``.
        slot: the place in the cache for the result, or None. Nothing is stored if a file of the model has changed meanwhile.

    Raises:
        VerificationFailed: the optimised model differs from the original.
        OrtscanError, OSError: see ``optimized``.
    """
    from ortscan.session.optimizing import free_weights, optimized

    result = optimized(source, options)
    report = result.report
    facts = Facts(os.path.abspath(source.path) if source.path is not None else "", report=report.to_dict())
    if slot is not None and not slot.may_store(source, result.locations):
        slot = None
    try:
        if result.refuted:
            _store_facts(slot, replace(facts, report=None, refuted=result.refuted))
            raise VerificationFailed(result.refuted)
        if report.changed:
            return _written(source, result, facts, slot)
    finally:
        free_weights(result.loaded)
    unchanged = unmodified(source, "unchanged")
    unchanged.applied.make_report = lambda: report
    _store_facts(slot, replace(facts, python_ops=unchanged.python_ops))
    return unchanged


def _written(source: SessionSource, result: "Optimized", facts: Facts, slot: CacheSlot | None) -> Prepared:
    """Return the optimised model for a session, and store it in the cache if possible.

    If the model exceeds the size limit of serialised models, it is written to a temporary folder instead, and not cached.
    """
    from ortscan.session.optimizing import serialised_with_references

    loaded, report = result.loaded, result.report
    applied = Applied("optimized", make_report=lambda: report, verified=result.verified)
    python_ops = any(node.domain == DOMAIN for node in loaded.model.graph.all_nodes())
    message = serialised_with_references(loaded)
    if message is None:
        from ortscan.modelio import save

        holder = TemporaryFolder()
        path = str(holder.path / "model.onnx")
        save(loaded, path, as_external_data=True)
        return Prepared(applied, path, python_ops=python_ops, holder=holder)
    content, has_references = message
    locations = result.locations if has_references else []
    if slot is not None and len(content) <= slot.store.limit:
        facts = replace(facts, python_ops=python_ops, data=locations, verified=result.verified)
        try:
            applied.entry = slot.store.put(slot.key, facts, content).folder
        except OSError as error:
            applied.why = f"the model was not cached in {slot.store.folder}: {error.strerror or error}"
    return Prepared(applied, None, content, python_ops, source if locations else None, locations)


def _store_facts(slot: CacheSlot | None, facts: Facts) -> None:
    """Store an entry in ``slot`` that has ``facts`` but no model. Do nothing if ``slot`` is None.

    If the entry cannot be written, the error is ignored, and the next session computes the facts again.
    """
    if slot is not None:
        with suppress(OSError):
            slot.store.put(slot.key, facts)
