"""A model on its way through the passes, and what is needed to hand it back as it came."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import onnx
import onnx_ir as ir

from ortscan.modelio.data_files import DataFiles
from ortscan.modelio.interface import Interface, contradicts
from ortscan.modelio.listed_weights import ListedWeights, list_weights, unlist_weights
from ortscan.modelio.reading import PROTOBUF_LIMIT
from ortscan.modelio.slots import tensor_slots
from rewrites.base.errors import InvariantBroken

__all__ = [
    "LoadedModel",
    "declare_negative_sizes_free",
    "reason_of",
    "restore_interface",
    "redeclare",
    "retake_interface",
    "sealed",
    "settle_new_initializers",
    "to_proto",
    "unsettle",
    "written",
]


@dataclass(eq=False)
class LoadedModel:
    """The model that passes may change in place, the kind of thing it came as, and its interface.

    A model of IR version 3 is held as IR version 4, with its weights off the list of inputs, until it is settled.
    ``tied``: what was said of outputs that had to be written otherwise; ``built_in``: of inputs that became constants.
    ``redeclared``: outputs that were declared with another shape than they have, as they were declared and as they are.
    ``seal``: see ``sealed``.
    ``judged``: the whole message that was looked at for faults; whoever changes the model after that lets go of it.
    ``names``: those that were taken in the opset in which it came.
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


@dataclass
class _Seal:
    """What a model that nobody changes any more is serialised as, once that was asked for."""

    proto: onnx.ModelProto | None = None


_LARGE_BYTES = 4 << 20
"""How long a message is that nobody wants beside the model it was made of."""


@contextmanager
def sealed(loaded: LoadedModel) -> Iterator[None]:
    """Serialise ``loaded`` no more than once meanwhile: whoever asks gets the same message, and must not change it.

    A large model that is to be handed back as a message is one from now on, and let go of.
    """
    loaded.seal, loaded.judged = _Seal(loaded.judged), None
    if loaded.kind != "ir" and not any(isinstance(slot.get(), ir.ExternalTensor) for slot in tensor_slots(loaded.model)):
        proto = to_proto(loaded)
        if _LARGE_BYTES < proto.ByteSize() < PROTOBUF_LIMIT:
            loaded.model = ir.Model(ir.Graph([], [], nodes=[]), ir_version=loaded.model.ir_version)
            gc.collect()  # an onnx_ir Model is full of cycles
    try:
        yield
    finally:
        loaded.seal = None


def restore_interface(loaded: LoadedModel) -> None:
    """Put the declared types, shapes and doc strings of inputs and outputs, and the model's metadata, back.

    Values may have been replaced meanwhile; their names and order must be the same.

    Raises:
        InvariantBroken: a public name went missing, is new, or changed places.
    """
    if not _is_written(loaded):
        loaded.interface.restore(loaded.model)


def declare_negative_sizes_free(loaded: LoadedModel) -> None:
    """Declare sizes below zero of inputs and outputs as free from now on: onnx's inference may refuse or die of what is new."""
    loaded.interface = loaded.interface.with_negative_sizes_free()


def retake_interface(loaded: LoadedModel) -> None:
    """Make the types and shapes that the inputs and outputs have now the declared ones (after shapes were fixed on purpose)."""
    redeclare(loaded, loaded.interface.retaken(loaded.model))


def redeclare(loaded: LoadedModel, interface: Interface) -> None:
    """Replace the interface, and note the outputs whose shapes contradict those that were declared."""
    for was, now in zip(loaded.interface.outputs, interface.outputs, strict=True):
        declared, _ = loaded.redeclared.get(was.name, (was, now))
        if contradicts(declared, now):
            loaded.redeclared[was.name] = (declared, now)
    loaded.interface = interface


def settle_new_initializers(loaded: LoadedModel) -> None:
    """Give a model that came in IR version 3 the form that version asks for, its new constants included; others are left."""
    if loaded.listed is not None and not _is_written(loaded):
        list_weights(loaded.model, loaded.listed)


def _is_written(loaded: LoadedModel) -> bool:
    return loaded.seal is not None and loaded.seal.proto is not None


def unsettle(loaded: LoadedModel) -> None:
    """Take ``settle_new_initializers`` back, so that the model may be rewritten further."""
    if loaded.listed is not None:
        loaded.listed = unlist_weights(loaded.model) or loaded.listed


def to_proto(loaded: LoadedModel) -> onnx.ModelProto:
    """Serialise the model with its interface as declared; references to external data stay as they are.

    Of a model that is sealed the same message is given again. Raises as ``written`` does.
    """
    if loaded.seal is None:
        return written(loaded)
    if loaded.seal.proto is None:
        loaded.seal.proto = written(loaded)
    return loaded.seal.proto


def written(loaded: LoadedModel) -> onnx.ModelProto:
    """Serialise the model as it is now, sealed or not.

    Raises:
        InvariantBroken: the interface is not what it was, or the model cannot be serialised.
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
    """Return the first line of what lies at the bottom of a chain of errors.

    Raises:
        MemoryError: that is what lies there, which says nothing of the model.
    """
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, MemoryError):
        raise error
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:300]
