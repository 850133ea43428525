"""From a model and the options of a session to the model the session runs, by way of the cache."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ortscan.cache.digest import identity_of_file
from ortscan.cache.key import key_of
from ortscan.cache.location import cache_folder
from ortscan.cache.store import Entry, Store
from ortscan.fork_safe import ForkSafeLock
from ortscan.session.applied import Applied
from ortscan.session.settings import Settings
from ortscan.session.source import Source
from ortscan.session.temporary import TemporaryFolder
from rewrites.python_ops.names import DOMAIN

if TYPE_CHECKING:
    from ortscan.modelio import LoadedModel
    from rewrites.report import Report

__all__ = ["Prepared", "at_work", "forget", "is_at_work", "prepare"]

_ONLY_FOR_LOOPS = frozenset({"target", "shapes", "max_unroll", "memory_budget", "fast_math", "passes", "skip"})
_busy = threading.local()
_one_at_a_time = ForkSafeLock()


@dataclass
class Prepared:
    """The model to open: ``path`` or ``content``, None for the one that was given.

    ``data_folder``: where its external data is, None where it has none. ``python_ops``: whether it holds Python custom ops.
    ``holder``: keeps temporary files alive.
    """

    applied: Applied
    path: str | None = None
    content: bytes | None = None
    data_folder: str | None = None
    python_ops: bool = False
    holder: Any = field(default=None, repr=False)

    @property
    def is_original(self) -> bool:
        """Whether this is the model that was given."""
        return self.path is None and self.content is None


@contextlib.contextmanager
def at_work() -> Iterator[None]:
    """Mark this thread as one in which sessions are ortscan's own, to be left alone."""
    before, _busy.on = is_at_work(), True
    try:
        yield
    finally:
        _busy.on = before


def is_at_work() -> bool:
    """Whether this thread is inside ``at_work``."""
    return getattr(_busy, "on", False)


def prepare(source: Source, settings: Settings, target: str) -> Prepared:
    """Give what a session should open in the place of ``source``.

    Raises whatever goes wrong: OrtscanError on purpose, OSError where the model cannot be read.
    """
    started = time.perf_counter()
    if settings.enable is False:
        prepared = _as_it_is(source, "original", "ortscan.enable is 0")
    elif source.in_ort_format:
        prepared = Prepared(Applied("original", "the model is in onnxruntime's own format"))
    else:
        with at_work():
            prepared = _prepared(source, settings, {"target": target, **settings.options})
    prepared.applied.target = str(settings.options.get("target", target))
    prepared.applied.seconds = time.perf_counter() - started
    return prepared


def forget(prepared: Prepared) -> None:
    """Take what was prepared out of the cache: it is of no use."""
    if prepared.applied.entry is not None:
        Store(prepared.applied.entry.parents[1]).drop(prepared.applied.entry.name)


def _as_it_is(source: Source, how: str, why: str | None = None) -> Prepared:
    applied = Applied("original" if how == "original" else "unchanged", why)
    return Prepared(applied, python_ops=source.names(DOMAIN.encode()))


def _prepared(source: Source, settings: Settings, options: Mapping[str, Any]) -> Prepared:
    if not settings.cache:
        return _fresh(source, options, None, "", None)
    store = Store(cache_folder(settings.cache_dir), settings.cache_size)
    before = source.identity()
    key = key_of(source.digest(store.notes), options)
    found = _from_cache(source, store, key)
    if found is not None:
        return found
    with _one_at_a_time:
        return _from_cache(source, store, key) or _fresh(source, options, store, key, before)


def _from_cache(source: Source, store: Store, key: str) -> Prepared | None:
    entry = store.get(key)
    if entry is not None and entry.facts.get("external"):
        try:
            entry = store.get(_key_with_data(key, source, entry.facts["external"]))
        except OSError:
            return None
    if entry is None:
        return None
    applied = Applied("cached" if entry.model else "unchanged", entry=entry.folder, make_report=lambda: _report_of(entry))
    facts = entry.facts
    if entry.model is None:
        return Prepared(applied, python_ops=facts["python_ops"])
    folder = source.data_folder if facts["refers"] else None
    return Prepared(applied, str(entry.model), None, folder, facts["python_ops"])


def _key_with_data(key: str, source: Source, locations: Sequence[str]) -> str:
    folder = source.data_folder
    return key_of(key, {}, *(identity_of_file(os.path.join(folder, location)) for location in locations))


def _report_of(entry: Entry) -> "Report | None":
    from rewrites.report import Report

    return Report.from_dict(entry.facts["report"]) if entry.facts.get("report") else None


def _fresh(source: Source, options: Mapping[str, Any], store: Store | None, key: str, before: list[int | str] | None) -> Prepared:
    """Optimise now; kept only where no file of the model was another one ``before``, when its digest was taken."""
    store = store if before == source.identity() else None
    if options.keys() <= _ONLY_FOR_LOOPS and not source.may_hold_loops:
        plain = _as_it_is(source, "unchanged")
        _keep(store, key, {"python_ops": plain.python_ops})
        return plain
    from ortscan.session.optimizing import optimized

    loaded, report, locations = optimized(source, options)
    if not _are_still(source, before, locations):
        store = None
    if store is not None and locations:
        _keep(store, key, {"external": list(locations)})
        key = key_of(key, {}, *locations.values())
    if not report.changed:
        plain = _as_it_is(source, "unchanged")
        plain.applied.make_report = lambda: report
        _keep(store, key, {"python_ops": plain.python_ops, "report": report.to_dict()})
        return plain
    return _written(source, loaded, report, store, key)


def _are_still(source: Source, before: list[int | str] | None, data: Mapping[str, list[int | str]]) -> bool:
    """Whether the files of the model are those they were."""
    try:
        now = {place: identity_of_file(os.path.join(source.data_folder, place)) for place in data}
        return now == data and source.identity() == before
    except OSError:
        return False


def _written(source: Source, loaded: "LoadedModel", report: "Report", store: Store | None, key: str) -> Prepared:
    """Put the optimised model where a session can open it: into the cache, or into memory, or into a temporary folder."""
    from ortscan.session.optimizing import serialised_with_references

    applied = Applied("optimized", make_report=lambda: report)
    message = serialised_with_references(loaded)
    python_ops = any(node.domain == DOMAIN for node in loaded.model.graph.all_nodes())
    if message is None:
        from ortscan.modelio import save

        holder = TemporaryFolder()
        path = str(holder.path / "model.onnx")
        save(loaded, path, as_external_data=True)
        return Prepared(applied, path, python_ops=python_ops, holder=holder)
    content, refers = message
    folder = source.data_folder if refers else None
    facts = {"python_ops": python_ops, "refers": refers, "report": report.to_dict()}
    if store is not None and len(content) <= store.limit:
        try:
            entry = store.put(key, facts, lambda path: path.write_bytes(content))
        except OSError as error:
            applied.why = f"the model was not kept in {store.folder}: {error.strerror or error}"
        else:
            applied.entry = entry.folder
    return Prepared(applied, None, content, folder, python_ops)


def _keep(store: Store | None, key: str, facts: Mapping[str, Any]) -> None:
    """Note facts where that is possible; where it is not, they are found again next time."""
    if store is not None:
        with contextlib.suppress(OSError):
            store.put(key, facts)
