"""From a model and the options of a session to the model the session runs, by way of the cache."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ortscan.base.fork_safe import ForkSafeLock
from ortscan.base.temporary import TemporaryFolder
from ortscan.cache.cold_start import one_at_a_time
from ortscan.cache.location import cache_folder
from ortscan.cache.renewal import Renewal
from ortscan.cache.store import PARTS, Entry, Store
from ortscan.cache.trust import why_not_trusted
from ortscan.session.applied import Applied
from ortscan.session.place import Found, Place, found_by_bytes, found_by_digest, keep
from ortscan.session.settings import Settings
from ortscan.session.source import Source
from ortscan.session.verdict import Verdict
from rewrites.base.errors import VerificationFailed
from rewrites.python_ops.names import DOMAIN

if TYPE_CHECKING:
    from ortscan.session.optimizing import Optimized
    from rewrites.base.report import Report

__all__ = ["ATTEMPTS", "LookUp", "Prepared", "at_work", "forget", "is_at_work", "prepare"]

_ONLY_FOR_LOOPS = frozenset(
    ("target", "shapes", "dims", "max_unroll", "memory_budget", "fast_math", "native", "passes", "skip", "verify", "on_difference")
)
_NOWHERE = "the model was not kept: this user has no folder, and neither ORTSCAN_CACHE_DIR nor ortscan.cache_dir names one"
_busy = threading.local()
_one_at_a_time = ForkSafeLock()


LookUp = Literal["all", "digest", ""]
"""Whether a model that was optimised earlier is looked for in all ways, or only by the digest of its content, or not at all."""
ATTEMPTS: tuple[LookUp, ...] = ("all", "digest", "")


@dataclass
class Prepared:
    """The model to open: ``path`` or ``content``, None for the one that was given.

    ``data_of``: what knows where its external data is, None where it has none; ``locations``: the names of that.
    ``python_ops``: whether it holds Python custom ops.
    ``verdict``: says whether what was taken from the cache is what it seems; it may be another model's if it ``is_guess``.
    ``renewal``: of the notes of the data, where it gets second names for a while. ``holder``: keeps temporary files alive.
    """

    applied: Applied
    path: str | None = None
    content: bytes | None = None
    data_of: Source | None = None
    python_ops: bool = False
    verdict: Verdict | None = field(default=None, repr=False)
    is_guess: bool = False
    locations: Sequence[str] = ()
    renewal: Renewal | None = field(default=None, repr=False)
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


def prepare(source: Source, settings: Settings, target: str, look_up: LookUp = "all") -> Prepared:
    """Return what a session should open in the place of ``source``, which may be what ``look_up`` finds.

    Raises whatever goes wrong: OrtscanError on purpose, OSError where the model cannot be read.
    """
    started = time.perf_counter()
    if settings.enable is False:
        prepared = _as_it_is(source, "original", "ortscan.enable is 0")
    elif source.in_ort_format:
        prepared = Prepared(Applied("original", "the model is in onnxruntime's own format"))
    else:
        with at_work():
            prepared = _prepared(source, settings, _options(settings, target), look_up)
    prepared.applied.target = str(settings.options.get("target", target))
    prepared.applied.seconds = time.perf_counter() - started
    return prepared


def _options(settings: Settings, target: str) -> dict[str, Any]:
    options = {"target": target, **settings.options}
    return {"native": True, **options} if settings.plans and options["target"] == "cpu" else options


def forget(prepared: Prepared) -> None:
    """Take what was prepared out of the cache, where it is of no use to anybody."""
    if not prepared.is_guess and prepared.applied.entry is not None:
        Store(prepared.applied.entry.parents[1]).drop(prepared.applied.entry.name)


def _as_it_is(source: Source, how: str, why: str | None = None) -> Prepared:
    applied = Applied("original" if how == "original" else "unchanged", why)
    return Prepared(applied, python_ops=source.names(DOMAIN.encode()))


def _prepared(source: Source, settings: Settings, options: Mapping[str, Any], look_up: LookUp) -> Prepared:
    store = _store(settings) if settings.cache else ""
    if isinstance(store, str):
        prepared = _fresh(source, options, None)
        if store and prepared.applied.source == "optimized":
            prepared.applied.why = store
        return prepared
    found = found_by_bytes(source, store, options) if look_up == "all" else None
    if found is not None and not (found.is_guess and found.entry.facts.get("refuted")):
        return _cached(source, store, found)
    place = Place.of(source, store, options)
    found = found_by_digest(source, place, renew=look_up == "digest") if look_up else None
    if found is not None:
        return _cached(source, store, found)
    with one_at_a_time(store.folder, place.key) as waited, _one_at_a_time:
        found = found_by_digest(source, place) if look_up else None
        if found is None and not waited:
            return _fresh(source, options, place)
    if found is not None:
        return _cached(source, store, found)
    with _one_at_a_time:  # whoever was waited for could not keep it
        return _fresh(source, options, place)


def _store(settings: Settings) -> Store | str:
    """Return the cache, or in words why there is none."""
    folder = cache_folder(settings.cache_dir)
    if folder is None:
        return _NOWHERE
    try:
        str(folder).encode()
        why = why_not_trusted(folder, *PARTS)
    except UnicodeEncodeError:
        why = "onnxruntime opens no path of such a name"
    except OSError as error:
        why = error.strerror or str(error)
    return f"the model was not kept in {folder}: {why}" if why else Store(Path(os.path.realpath(folder)), settings.cache_size)


def _cached(source: Source, store: Store, found: Found) -> Prepared:
    entry = found.entry
    store.mark_used(entry)
    facts = entry.facts
    if facts.get("refuted"):
        raise VerificationFailed(facts["refuted"])
    applied = Applied("cached" if entry.model else "unchanged", entry=entry.folder, make_report=lambda: _report_of(entry))
    applied.verified = facts.get("verified", "")
    prepared = Prepared(applied, str(entry.model) if entry.model else None, None, None, facts["python_ops"])
    prepared.is_guess = found.is_guess
    prepared.verdict = Verdict(found.confirm) if found.confirm is not None else None
    if entry.model is None:
        return prepared
    return _beside_data(prepared, source, store, facts["data"]) if facts["refers"] else prepared


def _beside_data(prepared: Prepared, source: Source, store: Store | None, places: Sequence[str]) -> Prepared:
    prepared.data_of, prepared.locations = source, places
    if store is not None:
        prepared.renewal = Renewal(source.data_files(places), store.notes)
    return prepared


def _report_of(entry: Entry) -> "Report | None":
    from rewrites.base.report import Report

    return Report.from_dict(entry.facts["report"]) if entry.facts.get("report") else None


def _fresh(source: Source, options: Mapping[str, Any], place: Place | None) -> Prepared:
    """Optimise now, and keep what came of it where no file of the model has changed since it was given its ``place``."""
    if place is not None and not place.is_for(source):
        place = None
    if options.keys() <= _ONLY_FOR_LOOPS and not source.may_hold_loops:
        plain = _as_it_is(source, "unchanged")
        _keep(source, place, {"python_ops": plain.python_ops})
        return plain
    from ortscan.session.optimizing import let_go, optimized

    found = optimized(source, options, place.store.notes if place is not None else None)
    report = found.report
    try:
        if place is not None:
            place = place.beside(source, found.data)
        if found.refuted:
            _keep(source, place, {"python_ops": False, "refuted": found.refuted})
            raise VerificationFailed(found.refuted)
        if report.changed:
            return _written(source, found, place)
    finally:
        let_go(found.loaded)
    plain = _as_it_is(source, "unchanged")
    plain.applied.make_report = lambda: report
    _keep(source, place, {"python_ops": plain.python_ops, "report": report.to_dict()})
    return plain


def _written(source: Source, found: "Optimized", place: Place | None) -> Prepared:
    """Put the optimised model where a session can open it: into the cache, or into memory, or into a temporary folder."""
    from ortscan.session.optimizing import serialised_with_references

    loaded, report, data = found.loaded, found.report, list(found.data)
    applied = Applied("optimized", make_report=lambda: report, verified=found.verified)
    message = serialised_with_references(loaded)
    python_ops = any(node.domain == DOMAIN for node in loaded.model.graph.all_nodes())
    if message is None:
        from ortscan.modelio import save

        holder = TemporaryFolder()
        path = str(holder.path / "model.onnx")
        save(loaded, path, as_external_data=True)
        return Prepared(applied, path, python_ops=python_ops, holder=holder)
    content, refers = message
    facts = {"python_ops": python_ops, "refers": refers, "data": data, "report": report.to_dict(), "verified": found.verified}
    if place is not None and len(content) <= place.store.limit:
        try:
            applied.entry = keep(source, place, facts, content).folder
        except OSError as error:
            applied.why = f"the model was not kept in {place.store.folder}: {error.strerror or error}"
    prepared = Prepared(applied, None, content, None, python_ops)
    return _beside_data(prepared, source, place.store if place is not None else None, data) if refers else prepared


def _keep(source: Source, place: Place | None, facts: Mapping[str, Any]) -> None:
    """Note facts where that is possible; where it is not, they are found again next time."""
    if place is not None:
        with contextlib.suppress(OSError):
            keep(source, place, facts)
