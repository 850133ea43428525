"""Optimises the model of a session now, and keeps what comes of it."""

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ortscan.base.temporary import TemporaryFolder
from ortscan.session.applied import Applied
from ortscan.session.place import Place, keep
from ortscan.session.prepared import Prepared, as_it_is, beside_data
from ortscan.session.source import Source
from rewrites.base.errors import VerificationFailed
from rewrites.python_ops.wire import DOMAIN

if TYPE_CHECKING:
    from ortscan.session.optimizing import Optimized

__all__ = ["fresh"]


def fresh(source: Source, options: Mapping[str, Any], place: Place | None) -> Prepared:
    """Optimise now, and keep what came of it where no file of the model has changed since it was given its ``place``."""
    if place is not None and not place.is_for(source):
        place = None
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
    plain = as_it_is(source, "unchanged")
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
    return beside_data(prepared, source, place.store if place is not None else None, data) if refers else prepared


def _keep(source: Source, place: Place | None, facts: Mapping[str, Any]) -> None:
    """Note facts where that is possible; where it is not, they are found again next time."""
    if place is not None:
        with contextlib.suppress(OSError):
            keep(source, place, facts)
