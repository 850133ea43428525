"""Optimise the model of a session.

This module imports onnx and onnx_ir, which is slow. So it is imported only if the cache has no entry for the model.
"""

import gc
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from ortscan.base.messages import quietly
from ortscan.base.proto_graphs import with_large_weights_as_inputs
from ortscan.edge.border import wrap_errors
from ortscan.modelio import Interface, LoadedModel, ModelLike, load, to_caller_type, to_proto
from ortscan.modelio.protos import locations_in
from ortscan.modelio.reading import PROTOBUF_LIMIT, parse
from ortscan.modelio.slots import graphs_in, tensor_slots
from ortscan.modelio.tensors import AbsentTensor
from ortscan.pipeline.compare_with_original import Level, compare, first_line, level_of
from ortscan.pipeline.on_difference import OnDifference, on_difference_of, verified
from ortscan.pipeline.rewriting import Rewriting
from ortscan.pipeline.self_check import self_checked
from ortscan.running.crash_risks import crash_risks
from ortscan.session.source import SessionSource
from rewrites.base.errors import ModelFileError, OptionError, VerificationFailed, is_raised_by

if TYPE_CHECKING:
    from ortscan.verification import Verification
    from rewrites.base.report import RewriteReport


from ortscan.verb_options import REWRITING_OPTIONS

__all__ = ["Optimized", "free_weights", "known_outputs", "optimized", "rewritten", "serialised_with_references"]

_FATAL = 4
_KnownOutputs = Mapping[str, tuple[int, Sequence[int | str | None]]]

_NOWHERE = ".in-memory"


@dataclass
class Optimized:
    """The optimised model and its report.

    Attributes:
        loaded: the optimised model.
        report: the report of the optimisation.
        locations: the locations of external data in the original.
        verified: one line on how the model was compared with the original. Empty if it was not compared.
        refuted: how the optimised model differs from the original. Empty if no difference is known.
    """

    loaded: LoadedModel
    report: "RewriteReport"
    locations: Sequence[str] = ()
    verified: str = ""
    refuted: str = ""


def optimized(source: SessionSource, options: Mapping[str, Any]) -> Optimized:
    """Optimise the model of a session, and compare the result with the original.

    If the result differs from the original, its attribute ``refuted`` says how. The option ``verify`` can disable the comparison.
    Raise OrtscanError if the model cannot be optimised, and OSError if a file cannot be read.
    """
    proto = parse(source.content, source.path or "the given bytes")
    locations = locations_in(proto)
    model = _model(source, proto, locations)
    hollow = with_large_weights_as_inputs(proto)
    del proto
    wanted = dict(options)
    level, on_difference = level_of(wanted.pop("verify", "quick")), on_difference_of(wanted.pop("on_difference", "raise"))
    for name in wanted:
        if name not in REWRITING_OPTIONS:
            raise OptionError(f"this version of ortscan has no option '{name}'.")
    result = rewritten(model, wanted, level, on_difference)
    if result.refuted and source.path is not None and Path(source.path).read_bytes() != source.content:
        raise ModelFileError(f"{source.path} was changed while the session was being created.")
    result.locations = locations
    if result.report.changed and not {"fix_shapes", "fix_dims"} & options.keys():
        result.loaded.interface = _with_known_outputs(result.loaded.interface, known_outputs(hollow))
    return result


@wrap_errors
@quietly
def rewritten(model: ModelLike, options: Mapping[str, Any], level: Level | None, on_difference: OnDifference) -> Optimized:
    """Rewrite a model, check the result, and compare it with the original.

    Args:
        model: the original.
        options: the options of the rewriting.
        level: how thorough the comparison is; None for no comparison.
        on_difference: what to do about a difference, as in ``pipeline.on_difference.verified``.
    """
    rewriting, started = Rewriting(model, **options), time.monotonic()
    outcome = self_checked(rewriting)
    spent = time.monotonic() - started
    result = Optimized(outcome.loaded, outcome.report)
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
    gc.collect()  # the compared models are full of reference cycles and hold weights
    return result


def free_weights(loaded: LoadedModel) -> None:
    """Free the weights of a model that is no longer needed.

    The model has reference cycles, which would keep the weights in memory until the next garbage collection.
    """
    for graph in graphs_in(loaded.model):
        for value in graph.initializers.values():
            value.const_value = None


def serialised_with_references(loaded: LoadedModel) -> tuple[bytes, bool] | None:
    """Return a pair: the serialised model, and True if it refers to external data, else False.

    Return None if the model exceeds the size limit of serialised models.
    """
    model = to_caller_type(loaded, references=True)
    proto = model if isinstance(model, onnx.ModelProto) else to_proto(loaded)
    if proto.ByteSize() > PROTOBUF_LIMIT:
        return None
    return proto.SerializeToString(), bool(locations_in(proto))


def _model(source: SessionSource, proto: onnx.ModelProto, locations: Sequence[str]) -> ModelLike:
    """Return the model to optimise, in a form with which ortscan finds its external data.

    This is a path, bytes, or a loaded model. If the SessionOptions hold weights in memory, the model is returned without external
    data, because these weights may replace the data.
    """
    if locations and source.is_in_memory:
        loaded = load(proto, source=os.path.join(source.data_folders[0], _NOWHERE, "model.onnx")).model
        for slot in tensor_slots(loaded):
            tensor = slot.get()
            if isinstance(tensor, AbsentTensor):
                slot.put(AbsentTensor(tensor, "the SessionOptions hold weights in memory, which ortscan cannot look at"))
        return loaded
    if not source.folder:
        if source.path is None or not locations:
            return source.content  # the file is not read again, because it may be replaced in between
        if len(source.data_files) == len(locations):
            return source.path
    return load(proto, source=os.path.join(source.data_folders[0], "model.onnx")).model


def known_outputs(hollow: onnx.ModelProto) -> _KnownOutputs:
    """Return the element types and shapes that a session of the original reports for its outputs.

    The optimised model declares these types and shapes. If the original does not declare the shape of an output, onnxruntime infers
    it from the nodes, and it might infer less from the nodes of the optimised model.

    Outputs that are no tensors are not included. The result is empty if no session can be created, or if creating one would crash
    the process. ``hollow`` is the original without weights.
    """
    if crash_risks(hollow):
        return {}
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = _FATAL
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(hollow.SerializeToString(), options, ["CPUExecutionProvider"], enable_fallback=0)
    except Exception as error:
        if not is_raised_by(error, "onnxruntime"):
            raise
        return {}  # so the declarations stay unchanged
    kinds = {f"tensor({name.lower()})": number for name, number in onnx.TensorProto.DataType.items()}
    return {output.name: (kinds[output.type], output.shape) for output in session.get_outputs() if output.type in kinds}


def _with_known_outputs(interface: Interface, known: _KnownOutputs) -> Interface:
    """Return a copy of ``interface`` with the types, shapes and sizes in ``known``.

    A type, shape or size that an output declares itself is kept.
    """
    outputs = []
    for info in interface.outputs:
        declared = onnx.ValueInfoProto()
        declared.CopyFrom(info)
        if info.name in known:
            _declare(declared.type, *known[info.name])
        outputs.append(declared)
    return replace(interface, outputs=tuple(outputs))


def _declare(declared: onnx.TypeProto, element: int, shape: Sequence[int | str | None]) -> None:
    if not declared.WhichOneof("value"):
        declared.tensor_type.elem_type = element
    if not shape or not declared.HasField("tensor_type"):  # an unknown shape looks like that of a scalar
        return
    dims = declared.tensor_type.shape.dim
    if not declared.tensor_type.HasField("shape"):
        for _ in shape:
            dims.add()
    if len(dims) == len(shape):
        for dim, size in zip(dims, shape, strict=True):
            _know(dim, size)


def _know(dim: onnx.TensorShapeProto.Dimension, size: int | str | None) -> None:
    if isinstance(size, int) and not dim.HasField("dim_value"):
        dim.dim_value = size
    elif isinstance(size, str) and not dim.WhichOneof("value"):
        dim.dim_param = size
