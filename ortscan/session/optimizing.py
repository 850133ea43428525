"""Optimises the model of a session. Imported only where the cache has nothing: it brings onnx and onnx_ir with it."""

import gc
import inspect
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from ortscan.base.quiet import quietly
from ortscan.cache.notes import Notes
from ortscan.edge.border import one_sentence
from ortscan.modelio import LoadedModel, ModelLike, give_back, load, to_proto
from ortscan.modelio.protos import locations_in
from ortscan.modelio.reading import PROTOBUF_LIMIT, parse
from ortscan.modelio.slots import graphs_in, tensor_slots
from ortscan.modelio.tensors import AbsentTensor
from ortscan.pipeline.compare_with_original import Level, compare, first_line, level_of
from ortscan.pipeline.on_difference import OnDifference, on_difference_of, verified
from ortscan.pipeline.rewriting import Rewriting
from ortscan.pipeline.self_check import self_checked
from ortscan.running.hollow import hollow_of
from ortscan.session.known_outputs import known_outputs, with_known_outputs
from ortscan.session.source import Source
from rewrites.base.errors import ModelFileError, OptionError, VerificationFailed

if TYPE_CHECKING:
    from ortscan.verification import Verification
    from rewrites.base.report import Report

__all__ = ["Optimized", "let_go", "optimized", "rewritten", "serialised_with_references"]

_NOWHERE = ".in-memory"


@dataclass
class Optimized:
    """The optimised model, the report, and the files that the model names for its external data, each with its digest.

    ``verified``: how the comparison with the original ended, in one line. ``refuted``: it is not what the original is, and why.
    """

    loaded: LoadedModel
    report: "Report"
    data: dict[str, str]
    verified: str = ""
    refuted: str = ""


def optimized(source: Source, options: Mapping[str, Any], notes: Notes | None) -> Optimized:
    """Optimise the model of a session, and compare the result with the original where that is not switched off.

    The digests were taken before, and only where there are ``notes`` to take them with. Raises OrtscanError and OSError.
    """
    proto = parse(source.content, source.path or "the given bytes")
    places = sorted(set(locations_in(proto)))
    digests = source.data_digests(places, notes) if notes is not None else dict.fromkeys(places, "")
    model = _model(source, proto, places)
    hollow = hollow_of(proto)
    del proto
    wanted = dict(options)
    level, on_difference = level_of(wanted.pop("verify", "quick")), on_difference_of(wanted.pop("on_difference", "raise"))
    for name in wanted:
        if name not in inspect.signature(Rewriting).parameters:
            raise OptionError(f"this version of ortscan has no option '{name}'.")
    found = rewritten(model, wanted, level, on_difference)
    if found.refuted and source.path is not None and Path(source.path).read_bytes() != source.content:
        raise ModelFileError(f"{source.path} was changed while the session was being made.")
    found.data = digests
    if found.report.changed and not {"fix_shapes", "fix_dims"} & options.keys():
        found.loaded.interface = with_known_outputs(found.loaded.interface, known_outputs(hollow))
    return found


@one_sentence
@quietly
def rewritten(model: ModelLike, options: Mapping[str, Any], level: Level | None, on_difference: OnDifference) -> Optimized:
    """Rewrite, check and compare, and let go of all that took."""
    rewriting, started = Rewriting(model, **options), time.monotonic()
    outcome = self_checked(rewriting)
    spent = time.monotonic() - started
    result = Optimized(outcome.loaded, outcome.report, {})
    if level is None or not outcome.report.changed:
        return result

    def compared(loaded: LoadedModel) -> "Verification":
        verification = compare(rewriting.model, loaded, level, spent, rewriting.sizes)
        result.verified = first_line(verification)
        return verification

    try:
        outcome = verified(rewriting, outcome, compared, on_difference, on_nothing="pass")
        result.loaded, result.report = outcome.loaded, outcome.report
    except VerificationFailed as error:
        result.refuted = str(error)
    gc.collect()  # what models were compared as is full of cycles, and holds weights
    return result


def let_go(loaded: LoadedModel) -> None:
    """Drop the weights of a model that is done with; it is full of cycles, and stays until the garbage collector finds it."""
    for graph in graphs_in(loaded.model):
        for value in graph.initializers.values():
            value.const_value = None


def serialised_with_references(loaded: LoadedModel) -> tuple[bytes, bool] | None:
    """Return the model as bytes, and whether it refers to external data; None where it is too large for bytes."""
    given = give_back(loaded, references=True)
    proto = given if isinstance(given, onnx.ModelProto) else to_proto(loaded)
    if proto.ByteSize() > PROTOBUF_LIMIT:
        return None
    return proto.SerializeToString(), bool(locations_in(proto))


def _model(source: Source, proto: onnx.ModelProto, places: Sequence[str]) -> ModelLike:
    """Return what is to be optimised, as it finds its external data; what is given in memory is looked for where nothing is."""
    if places and source.is_in_memory:
        loaded = load(proto, source=os.path.join(source.data_folder, _NOWHERE, "model.onnx")).model
        for slot in tensor_slots(loaded):
            tensor = slot.get()
            if isinstance(tensor, AbsentTensor):
                slot.put(AbsentTensor(tensor, "the SessionOptions hold weights in memory, which ortscan cannot look at"))
        return loaded
    if not source.folder:
        if source.path is None or not places:
            return source.content  # not read again: somebody may replace the file in between
        if len(source.data_files(places)) == len(places):
            return source.path
    return load(proto, source=os.path.join(source.data_folder, "model.onnx")).model
