"""A model between loading and saving, with everything needed to return it in its original form."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import onnx
import onnx_ir as ir

from ortscan.modelio.data_files import DataFiles
from ortscan.modelio.interface import Interface, contradicts, lacks_declared_sizes
from ortscan.modelio.listed_weights import ListedWeights, list_weights, unlist_weights
from ortscan.modelio.reading import PROTOBUF_LIMIT
from ortscan.modelio.slots import ir_with_own_tensors, tensor_slots
from rewrites.base.errors import InvariantBroken

__all__ = [
    "LoadedModel",
    "declare_current_types",
    "declare_negative_sizes_free",
    "reason_of",
    "redeclare",
    "reopened",
    "restore_interface",
    "sealed",
    "settle_new_initializers",
    "to_proto",
    "unsettle_initializers",
    "written",
]


@dataclass(eq=False)
class LoadedModel:
    """A loaded model and its interface. The passes of ``optimize`` change the model in place.

    Args:
        model: the model. A model of IR version 3 is held in IR version 4, without weights among the inputs, until
            ``settle_new_initializers`` converts it back.
        kind: the type of the caller's model.
        source: the file that the model was read from.
        interface: the inputs, outputs and header as declared.
        listed: how a model of IR version 3 listed its weights.
        files: the files of external data.
        tied: a sentence on each repair of ``tie_outputs``, which replaces outputs that onnxruntime rejects.
        built_in: notes on inputs that became constants.
        redeclared: the outputs whose declared shape was wrong, each with its old and its corrected declaration.
        seal: see ``sealed``.
        judged: the serialised model that was checked for faults. It is valid until the model changes.
        names: the names that were in use when the model was migrated to another opset. New values do not get these names.
        unchanged: the caller's model, if nothing changed it. It is then returned and written as it is. Otherwise None.
    """

    model: ir.Model
    kind: Literal["path", "bytes", "proto", "ir"]
    source: Path | None
    interface: Interface
    listed: ListedWeights | None = field(default=None, repr=False)
    files: DataFiles = field(default_factory=DataFiles, repr=False)
    tied: list[str] = field(default_factory=list, repr=False)
    built_in: list[str] = field(default_factory=list, repr=False)
    redeclared: dict[str, tuple[onnx.ValueInfoProto, onnx.ValueInfoProto]] = field(default_factory=dict, repr=False)
    seal: "_Seal | None" = field(default=None, repr=False)
    judged: onnx.ModelProto | None = field(default=None, repr=False)
    names: frozenset[str] = field(default=frozenset(), repr=False)
    unchanged: object = field(default=None, repr=False)


@dataclass
class _Seal:
    """The serialised message of a model that no longer changes, or None if it was not serialised yet."""

    proto: onnx.ModelProto | None = None


_LARGE_BYTES = 4 << 20
"""If a message has more bytes, it is kept without its model."""


@contextmanager
def sealed(loaded: LoadedModel) -> Iterator[None]:
    """Serialise ``loaded`` at most once within the context.

    Every call of ``to_proto(loaded)`` returns the same message. Nobody may change ``loaded`` or the message. If the model is large
    and will be returned as a message, it is serialised at once and ``loaded.model`` becomes empty, so that only the message stays
    in memory.
    """
    loaded.seal, loaded.judged = _Seal(loaded.judged), None
    if loaded.kind != "ir" and not any(isinstance(slot.get(), ir.ExternalTensor) for slot in tensor_slots(loaded.model)):
        proto = to_proto(loaded)
        if _LARGE_BYTES < proto.ByteSize() < PROTOBUF_LIMIT:
            loaded.model = ir.Model(ir.Graph([], [], nodes=[]), ir_version=loaded.model.ir_version)
            gc.collect()  # an onnx_ir Model is full of reference cycles
    try:
        yield
    finally:
        loaded.seal = None


def reopened(loaded: LoadedModel) -> LoadedModel:
    """Return an unsealed copy of a model, which may be changed.

    ``loaded`` must not be used any more.
    """
    proto = None if loaded.seal is None else loaded.seal.proto
    is_empty = proto is not None and not len(loaded.model.graph) and not loaded.model.graph.outputs
    model = ir_with_own_tensors(proto) if proto is not None and is_empty else loaded.model
    copy = replace(loaded, model=model, seal=None, judged=None, unchanged=None)
    unsettle_initializers(copy)
    return copy


def _is_written(loaded: LoadedModel) -> bool:
    return loaded.seal is not None and loaded.seal.proto is not None


def restore_interface(loaded: LoadedModel) -> None:
    """Restore the declared types, shapes and doc strings of inputs and outputs, and the model's metadata.

    Raise InvariantBroken if the public names or their order changed.
    """
    if not _is_written(loaded):
        loaded.interface.restore(loaded.model)


def declare_negative_sizes_free(loaded: LoadedModel) -> None:
    """Declare negative sizes of inputs and outputs as free.

    Otherwise onnx's inference may reject the new model or crash.
    """
    loaded.interface = loaded.interface.with_negative_sizes_free()


def declare_current_types(loaded: LoadedModel) -> None:
    """Declare the current types and shapes of the inputs and outputs.

    This is used if an option fixed shapes.
    """
    redeclare(loaded, loaded.interface.with_current_types(loaded.model))


def redeclare(loaded: LoadedModel, interface: Interface) -> None:
    """Replace the interface.

    Record the outputs whose new shapes contradict the declared shapes or lack declared sizes.
    """
    for was, now in zip(loaded.interface.outputs, interface.outputs, strict=True):
        declared, _ = loaded.redeclared.get(was.name, (was, now))
        if contradicts(declared, now) or lacks_declared_sizes(declared, now):
            loaded.redeclared[was.name] = (declared, now)
    loaded.interface = interface


def settle_new_initializers(loaded: LoadedModel) -> None:
    """Convert the model back to IR version 3 if it had this version when it was loaded.

    The weights become inputs again, and new constants become Constant nodes or inputs; see ``listed_weights``. A model that was
    loaded with another IR version is not changed.
    """
    if loaded.listed is not None and not _is_written(loaded):
        list_weights(loaded.model, loaded.listed)


def unsettle_initializers(loaded: LoadedModel) -> None:
    """Undo ``settle_new_initializers``, so that the model may be rewritten further."""
    if loaded.listed is not None:
        loaded.listed = unlist_weights(loaded.model) or loaded.listed


def to_proto(loaded: LoadedModel) -> onnx.ModelProto:
    """Serialise the model with its declared interface and its references to external data.

    A sealed model returns the same message each time. Raise the errors of ``written``.
    """
    if loaded.seal is None:
        return written(loaded)
    if loaded.seal.proto is None:
        loaded.seal.proto = written(loaded)
    return loaded.seal.proto


def written(loaded: LoadedModel) -> onnx.ModelProto:
    """Serialise the model, sealed or not.

    Raise InvariantBroken if the interface changed or the model cannot be serialised.
    """
    restore_interface(loaded)
    settle_new_initializers(loaded)
    try:
        proto = ir.to_proto(loaded.model)
    except ir.serde.SerdeError as error:
        raise InvariantBroken(f"The rewritten model cannot be serialised: {reason_of(error)}") from error
    loaded.interface.write_into(proto)
    return proto


def reason_of(error: BaseException) -> str:
    """Return the first line of the root cause of an error. If the root cause is a MemoryError, raise it."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, MemoryError):
        raise error
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:300]
