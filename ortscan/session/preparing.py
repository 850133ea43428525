"""From a model and the options of a session to the model the session runs, by way of the cache."""

import contextlib
import functools
import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ortscan.base.fork_safe import ForkSafeLock
from ortscan.base.warned import warn
from ortscan.cache.cold_start import one_at_a_time
from ortscan.cache.location import cache_folder
from ortscan.cache.store import PARTS, Entry, Store
from ortscan.cache.trust import why_not_trusted
from ortscan.session.applied import Applied
from ortscan.session.candidates import may_be_changed
from ortscan.session.making import made
from ortscan.session.place import Found, Place, found_by_bytes, found_by_digest
from ortscan.session.prepared import Prepared, as_it_is, beside_data
from ortscan.session.settings import Settings
from ortscan.session.source import Source
from ortscan.session.verdict import Verdict
from rewrites.base.errors import VerificationFailed

if TYPE_CHECKING:
    from rewrites.base.report import Report

__all__ = ["ATTEMPTS", "LookUp", "at_work", "forget", "is_at_work", "prepare"]

_NOWHERE = "the model was not kept: this user has no folder, and neither ORTSCAN_CACHE_DIR nor ortscan.cache_dir names one"
_busy = threading.local()
_one_at_a_time = ForkSafeLock()


LookUp = Literal["all", "digest", ""]
"""Whether a model that was optimised earlier is looked for in all ways, or only by the digest of its content, or not at all."""
ATTEMPTS: tuple[LookUp, ...] = ("all", "digest", "")


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
        prepared = as_it_is(source, "original", settings.why_not)
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


def _prepared(source: Source, settings: Settings, options: Mapping[str, Any], look_up: LookUp) -> Prepared:
    if not may_be_changed(source.outline, options):
        return as_it_is(source, "unchanged")
    store = _store(settings) if settings.cache else ""
    if isinstance(store, str):
        prepared = made(source, options, None)
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
    with one_at_a_time(store.folder, place.key, source.size) as waited, _one_at_a_time:
        found = found_by_digest(source, place) if look_up else None
        if found is None and not waited:
            return made(source, options, place)
    if found is not None:
        return _cached(source, store, found)
    with _one_at_a_time:  # whoever was waited for could not keep it
        return made(source, options, place)


def _store(settings: Settings) -> Store | str:
    """Return the cache, or in words why there is none."""
    folder = cache_folder(settings.cache_dir)
    if folder is None:
        return _NOWHERE
    try:
        str(folder).encode()
        why = why_not_trusted(folder, *PARTS)
        if why is not None:
            _warn_of_untrusted(folder, why)
    except UnicodeEncodeError:
        why = "onnxruntime opens no path of such a name"
    except OSError as error:
        why = error.strerror or str(error)
    return f"the model was not kept in {folder}: {why}" if why else Store(Path(os.path.realpath(folder)), settings.cache_size)


@functools.cache
def _warn_of_untrusted(folder: Path, why: str) -> None:
    """Issue an OrtscanWarning, once a process, that sessions keep nothing in ``folder``."""
    warn(
        f"sessions optimise their models at every start, because nothing is kept in {folder}: {why}. Set ORTSCAN_CACHE_DIR or "
        f"ortscan.cache_dir to a folder of this user that, like those above it, others cannot write to; or set ortscan.cache to 0."
    )


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
    return beside_data(prepared, source, store, facts["data"]) if facts["refers"] else prepared


def _report_of(entry: Entry) -> "Report | None":
    from rewrites.base.report import Report

    return Report.from_dict(entry.facts["report"]) if entry.facts.get("report") else None
