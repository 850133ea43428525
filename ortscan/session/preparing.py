"""From a model and the options of a session to the model the session runs, by way of the cache."""

import contextlib
import functools
import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ortscan.base.forks import ForkSafeLock
from ortscan.base.messages import warn
from ortscan.base.paths import is_pipe
from ortscan.base.temporary import TemporaryFolder
from ortscan.cache.digests import key_of
from ortscan.cache.location import cache_folder
from ortscan.cache.lock import one_at_a_time
from ortscan.cache.ownership import why_not_trusted
from ortscan.cache.store import PARTS, Entry, Store
from ortscan.session.applied import Applied, Prepared, as_it_is
from ortscan.session.fresh import Slot, fresh
from ortscan.session.outline import may_be_changed
from ortscan.session.settings import Settings
from ortscan.session.source import SessionSource
from rewrites.base.errors import VerificationFailed

if TYPE_CHECKING:
    from rewrites.base.report import RewriteReport

__all__ = ["as_path_or_bytes", "at_work", "forget", "is_at_work", "prepare"]

_LARGE = 16 << 20
"""From so many bytes on, the memory that optimising takes is worth the start of a subprocess."""

_NOWHERE = "the model was not kept: this user has no folder, and neither ORTSCAN_CACHE_DIR nor ortscan.cache_dir names one"
_busy = threading.local()
_one_at_a_time = ForkSafeLock()


@contextlib.contextmanager
def at_work() -> Iterator[None]:
    """Mark this thread as one in which sessions are ortscan's own, to be left alone."""
    before, _busy.on = is_at_work(), True
    try:
        yield
    finally:
        _busy.on = before


def is_at_work() -> bool:
    """Return True if this thread is inside ``at_work``."""
    return getattr(_busy, "on", False)


def as_path_or_bytes(model: Any) -> tuple[Any, Any]:
    """Return what onnxruntime takes: bytes for the content of a pipe, for a ModelProto and an onnx_ir Model.

    A model that is too large for bytes, or has folders of its own, is written to a temporary file, whose path is returned. The
    second item keeps that file alive. Anything else is returned as it is, for onnxruntime to take or refuse.
    """
    if is_pipe(model):
        return Path(model).read_bytes(), None
    kind = f"{type(model).__module__}.{type(model).__name__}"
    if not (hasattr(model, "SerializeToString") or kind.startswith("onnx_ir.")):
        return model, None
    import onnx
    import onnx_ir as ir

    from ortscan.modelio import load, save
    from ortscan.modelio.reading import PROTOBUF_LIMIT
    from ortscan.session.optimizing import serialised_with_references

    if not isinstance(model, onnx.ModelProto | ir.Model):
        return model, None
    if isinstance(model, onnx.ModelProto) and model.ByteSize() <= PROTOBUF_LIMIT:
        return model.SerializeToString(), None
    loaded = load(model)
    message = serialised_with_references(loaded) if isinstance(model, ir.Model) else None
    if message is not None and not message[1]:
        return message[0], None
    holder = TemporaryFolder()
    save(loaded, holder.path / "model.onnx")
    return str(holder.path / "model.onnx"), holder


def prepare(source: SessionSource, settings: Settings, target: str, look_up: bool) -> Prepared:
    """Return what a session should open in the place of ``source``; ``look_up``: it may be an entry of the cache.

    Raise whatever goes wrong: OrtscanError on purpose, OSError if the model cannot be read.
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


def forget(prepared: Prepared) -> None:
    """Remove the cache entry of what was prepared: onnxruntime does not open it."""
    if prepared.applied.entry is not None:
        Store(prepared.applied.entry.parents[1]).drop(prepared.applied.entry.name)


def _options(settings: Settings, target: str) -> dict[str, Any]:
    options = {"target": target, **settings.options}
    return {"native": True, **options} if settings.plans and options["target"] == "cpu" else options


def _prepared(source: SessionSource, settings: Settings, options: Mapping[str, Any], look_up: bool) -> Prepared:
    if not may_be_changed(source.outline, options):
        return as_it_is(source, "unchanged")
    store = _store(settings) if settings.cache else ""
    if isinstance(store, str):
        prepared = _optimised(source, options, None)
        if store and prepared.applied.source == "optimized":
            prepared.applied.why = store
        return prepared
    fingerprint = source.fingerprint()
    slot = Slot(store, key_of(fingerprint, options), fingerprint)
    entry = store.get(slot.key) if look_up else None
    if entry is not None:
        return _cached(source, entry)
    with one_at_a_time(store.folder, slot.key, source.size) as waited, _one_at_a_time:
        entry = store.get(slot.key) if look_up else None
        if entry is None and not waited:
            return _optimised(source, options, slot)
    if entry is not None:
        return _cached(source, entry)
    with _one_at_a_time:  # whoever was waited for could not keep it
        return _optimised(source, options, slot)


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


def _optimised(source: SessionSource, options: Mapping[str, Any], slot: Slot | None) -> Prepared:
    """Optimise a small model here and a large one in a subprocess. Raise what ``fresh`` raises."""
    if source.size >= _LARGE:
        from ortscan.base import child_process
        from ortscan.session.optimize_subprocess import fresh_in_subprocess

        prepared = fresh_in_subprocess(source, options, slot) if child_process.can_start() else None
        if prepared is not None:
            return prepared
    return fresh(source, options, slot)


def _cached(source: SessionSource, entry: Entry) -> Prepared:
    """Return the model of an entry. Raise VerificationFailed if it is kept as one that differs from the original."""
    facts, path = entry.facts, entry.model
    if facts.refuted:
        raise VerificationFailed(facts.refuted)
    applied = Applied("cached" if path else "unchanged", entry=entry.folder, make_report=lambda: _report_of(entry))
    applied.verified = facts.verified
    if path is None:
        return Prepared(applied, python_ops=facts.python_ops)
    return Prepared(applied, str(path), None, facts.python_ops, source if facts.data else None, facts.data)


def _report_of(entry: Entry) -> "RewriteReport | None":
    from rewrites.base.report import RewriteReport

    return RewriteReport.from_dict(entry.facts.report) if entry.facts.report else None
