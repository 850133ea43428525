"""Prepare the model that a session runs: read it from the cache, or optimise it."""

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
from ortscan.cache.digests import entry_key
from ortscan.cache.location import cache_folder
from ortscan.cache.lock import entry_lock
from ortscan.cache.ownership import why_not_trusted
from ortscan.cache.store import PARTS, Entry, Store
from ortscan.session.applied import Applied, Prepared, unmodified
from ortscan.session.fresh import CacheSlot, fresh
from ortscan.session.outline import may_be_changed
from ortscan.session.settings import Settings
from ortscan.session.source import SessionSource
from rewrites.base.errors import VerificationFailed

if TYPE_CHECKING:
    from rewrites.base.report import RewriteReport

__all__ = ["as_path_or_bytes", "creates_own_sessions", "forget", "own_sessions", "prepare"]

_LARGE = 16 << 20
"""Models of at least this many bytes are optimised in a subprocess, because that takes much memory."""

_NOWHERE = "the model was not cached: this user has no cache folder, and neither ORTSCAN_CACHE_DIR nor ortscan.cache_dir names one"
_busy = threading.local()
_one_at_a_time = ForkSafeLock()


@contextlib.contextmanager
def own_sessions() -> Iterator[None]:
    """While the ``with`` block runs, sessions that this thread creates run their models unchanged.

    ortscan uses such sessions itself, for example to compare the optimised model with the original.
    """
    before, _busy.on = creates_own_sessions(), True
    try:
        yield
    finally:
        _busy.on = before


def creates_own_sessions() -> bool:
    """Return True if this thread is inside a ``with own_sessions()`` block."""
    return getattr(_busy, "on", False)


def as_path_or_bytes(model: Any) -> tuple[Any, Any]:
    """Convert the caller's model to a path or bytes, which onnxruntime accepts.

    * A pipe is read into bytes.
    * A ModelProto or onnx_ir Model becomes bytes. If it is too large for that, or if an onnx_ir Model has external data, it is
      written to a temporary file instead.
    * Any other value is returned unchanged, and onnxruntime accepts or rejects it.

    Returns:
        The path or the bytes, and an object that keeps the temporary file until it is freed (None without a temporary file).
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
    """Return the model that a session opens instead of ``source``.

    Args:
        source: the original model.
        settings: the options of the session.
        target: the target to optimise for, unless ``settings`` name another one.
        look_up: True to look for the model in the cache. If False, it is optimised again.

    Raises:
        OSError: the model cannot be read.
        OrtscanError: the model cannot be optimised.
        Exception: an unexpected error during the optimisation.
    """
    started = time.perf_counter()
    if settings.enable is False:
        prepared = unmodified(source, "original", settings.why_not)
    elif source.in_ort_format:
        prepared = Prepared(Applied("original", "the model is in onnxruntime's own format"))
    else:
        with own_sessions():
            prepared = _prepared(source, settings, _options(settings, target), look_up)
    prepared.applied.target = str(settings.options.get("target", target))
    prepared.applied.seconds = time.perf_counter() - started
    return prepared


def forget(prepared: Prepared) -> None:
    """Remove the cache entry of ``prepared`` after onnxruntime has failed to open the cached model."""
    if prepared.applied.entry is not None:
        Store(prepared.applied.entry.parents[1]).drop(prepared.applied.entry.name)


def _options(settings: Settings, target: str) -> dict[str, Any]:
    options = {"target": target, **settings.options}
    return {"native": True, **options} if settings.plans and options["target"] == "cpu" else options


def _prepared(source: SessionSource, settings: Settings, options: Mapping[str, Any], look_up: bool) -> Prepared:
    if not may_be_changed(source.outline, options):
        return unmodified(source, "unchanged")
    store = _store(settings) if settings.cache else ""
    if isinstance(store, str):
        prepared = _optimised(source, options, None)
        if store and prepared.applied.source == "optimized":
            prepared.applied.why = store
        return prepared
    fingerprint = source.fingerprint()
    slot = CacheSlot(store, entry_key(fingerprint, options), fingerprint)
    entry = store.get(slot.key) if look_up else None
    if entry is not None:
        return _cached(source, entry)
    with entry_lock(store.folder, slot.key, source.size) as waited, _one_at_a_time:
        entry = store.get(slot.key) if look_up else None
        if entry is None and not waited:
            return _optimised(source, options, slot)
    if entry is not None:
        return _cached(source, entry)
    with _one_at_a_time:  # the other process stored no entry
        return _optimised(source, options, slot)


def _store(settings: Settings) -> Store | str:
    """Return the cache. If nothing can be cached, return the reason in one sentence instead."""
    folder = cache_folder(settings.cache_dir)
    if folder is None:
        return _NOWHERE
    try:
        str(folder).encode()
        why = why_not_trusted(folder, *PARTS)
        if why is not None:
            _warn_of_untrusted(folder, why)
    except UnicodeEncodeError:
        why = "onnxruntime cannot open a path with this name"
    except OSError as error:
        why = error.strerror or str(error)
    return f"the model was not cached in {folder}: {why}" if why else Store(Path(os.path.realpath(folder)), settings.cache_size)


@functools.cache
def _warn_of_untrusted(folder: Path, why: str) -> None:
    """Issue an OrtscanWarning that ortscan does not use ``folder`` as a cache. ``why`` is the reason.

    The same warning is issued only once per process.
    """
    warn(
        f"sessions optimise their models at every start, because nothing is cached in {folder}: {why}. Set ORTSCAN_CACHE_DIR or "
        f"ortscan.cache_dir to a folder of this user that others cannot write to, nor to those above it; or set ortscan.cache to 0."
    )


def _optimised(source: SessionSource, options: Mapping[str, Any], slot: CacheSlot | None) -> Prepared:
    """Optimise a model: in a subprocess if it is large, otherwise in this process.

    If no subprocess can be started, a large model is optimised in this process too. Raise the errors of ``fresh``.
    """
    if source.size >= _LARGE:
        from ortscan.base import child_process
        from ortscan.session.optimize_subprocess import fresh_in_subprocess

        prepared = fresh_in_subprocess(source, options, slot) if child_process.can_start() else None
        if prepared is not None:
            return prepared
    return fresh(source, options, slot)


def _cached(source: SessionSource, entry: Entry) -> Prepared:
    """Return the model of a cache entry.

    If the entry has no model, there was nothing to optimise, so the session opens the original. Raise VerificationFailed if the
    entry records that the optimised model differs from the original.
    """
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
