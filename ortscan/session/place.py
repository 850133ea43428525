"""Where in the cache what becomes of a model is looked for and kept."""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ortscan.cache.checked import is_known_whole, is_whole
from ortscan.cache.checks import checks_of
from ortscan.cache.digest import digest_of_bytes
from ortscan.cache.key import key_of
from ortscan.cache.listing import OF
from ortscan.cache.own_files import open_own
from ortscan.cache.store import Entry, Store
from ortscan.session.source import Source

__all__ = ["Found", "Place", "found_by_bytes", "found_by_digest", "keep"]

_MOST_OF_ONE_SAMPLE = 4
_PART_FOR_GIVEN = 8


@dataclass(frozen=True)
class Found:
    """An entry that can be opened, and what has still to ``confirm`` it; ``is_guess``: it may be another model's."""

    entry: Entry
    confirm: Callable[[], bool] | None = None
    is_guess: bool = False


@dataclass(frozen=True)
class Place:
    """The name ``key`` in ``store`` for what becomes of a model of ``digest``; ``identity``: that of its file then, if it has one.

    ``model_key``: the name that says which external data the key depends on, or the same. ``sample_key``: the name under which
    such names are noted for bytes that agree in a few samples.
    """

    store: Store
    key: str
    model_key: str
    digest: str
    identity: list[int | str] | None
    sample_key: str | None

    @classmethod
    def of(cls, source: Source, store: Store, options: Mapping[str, Any]) -> "Place":
        """Find it. Raises OSError."""
        identity = source.identity()
        digest = source.digest(store.notes)
        fits = source.given is not None and len(source.given) <= store.limit // _PART_FOR_GIVEN
        sample_key = key_of(store.notes, source.sample, options) if fits and source.sample else None
        key = key_of(store.notes, digest, options)
        return cls(store, key, key, digest, identity, sample_key)

    def is_for(self, source: Source) -> bool:
        """Whether the content that ``source`` holds now, and will be optimised, is the one this place is for."""
        return source.path is None or digest_of_bytes(source.content) == self.digest

    def beside(self, source: Source, data: Mapping[str, str]) -> "Place | None":
        """Return the place for the model with external ``data`` (files and their digests); None if any of its files has changed."""
        try:
            if source.data_digests(data, self.store.notes) != data:
                return None
            if source.identity() != self.identity:
                return None
            if not data:
                return self
            self.store.put(self.key, {"external": list(data)})
        except OSError:
            return None
        return replace(self, key=key_of(self.store.notes, self.key, {}, *data.values()))


def found_by_digest(source: Source, place: Place, renew: bool = False) -> Found | None:
    """Return the entry at ``place``, or None. From then on it is known by its bytes where they are given.

    ``renew``: also if it should have been known by them before.
    """
    entry = _entry(source, place.store, place.key, place.store.get)
    if entry is None:
        return None
    if place.sample_key and (renew or "given" not in entry.facts):
        with suppress(OSError):
            content = _content(entry)
            if checks_of(content) != entry.facts["checks"]:
                place.store.drop(entry.folder.name)
                return None
            keep(source, replace(place, key=entry.folder.name), entry.facts, content)
    elif place.sample_key:
        _note(place, place.sample_key)
    if not entry.has_large_weights or is_known_whole(entry, place.store.notes):
        return Found(entry)
    return Found(entry, functools.partial(is_whole, entry, place.store.notes))


def found_by_bytes(source: Source, store: Store, options: Mapping[str, Any]) -> Found | None:
    """Return the entry made from the very bytes of ``source``, or None; the only one in question is left to be confirmed."""
    given = source.given
    if given is None or source.sample is None:
        return None
    keys = _noted(store, key_of(store.notes, source.sample, options))
    for key in keys:
        with suppress(OSError, ValueError):
            entry = _entry(source, store, key, store.find)
            if entry is None or not entry.can_be_opened:
                continue
            if len(keys) == 1:
                return Found(entry, functools.partial(entry.is_made_from, given), is_guess=True)
            if entry.is_made_from(given):
                return Found(entry)
    return None


def _entry(source: Source, store: Store, key: str, look_up: Callable[[str], Entry | None]) -> Entry | None:
    entry = look_up(key)
    external = None if entry is None else entry.facts.get("external")
    if external:
        if not _are_names(external):
            return None
        try:
            digests = source.data_digests(external, store.notes)
        except OSError:
            return None
        entry = look_up(key_of(store.notes, key, {}, *digests.values()))
    return entry if entry is not None and _says_how_to_open(entry) else None


def _says_how_to_open(entry: Entry) -> bool:
    """Whether all is known of ``entry`` that was kept with it."""
    facts = entry.facts
    if entry.model is not None and not (isinstance(facts.get("refers"), bool) and _are_names(facts.get("data"))):
        return False
    said = all(isinstance(facts.get(name, ""), str) for name in ("verified", "refuted"))
    return said and isinstance(facts.get("python_ops"), bool) and isinstance(facts.get("report"), dict | None)


def _content(entry: Entry) -> bytes:
    if entry.model is None:
        return b""
    with open_own(entry.model) as file:
        return file.readall()


def _are_names(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(name, str) for name in found)


def keep(source: Source, place: Place, facts: Mapping[str, Any], content: bytes = b"") -> Entry:
    """Keep ``facts`` and an optimised model at ``place``. Raises OSError."""
    facts = {OF: os.path.abspath(source.path) if source.path is not None else "", **facts}
    entry = place.store.put(place.key, facts, content, source.given if place.sample_key else None)
    if place.sample_key:
        _note(place, place.sample_key)
    return entry


def _note(place: Place, sample_key: str) -> None:
    known = _noted(place.store, sample_key)
    if place.model_key not in known:
        place.store.notes.write(sample_key, {"keys": [place.model_key, *known][:_MOST_OF_ONE_SAMPLE]})


def _noted(store: Store, sample_key: str) -> Sequence[str]:
    keys = store.notes.read(sample_key).get("keys")
    return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []
