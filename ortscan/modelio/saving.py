"""From a loaded model back to the kind of thing the caller gave, or to a file."""

import os
from collections.abc import Sequence
from pathlib import Path

import onnx
import onnx_ir as ir

from ortscan.modelio import reading
from ortscan.modelio.destination import destination
from ortscan.modelio.loaded import LoadedModel, restore_interface, settle_new_initializers, to_proto
from ortscan.modelio.loading import AnyModel, load
from ortscan.modelio.model_file import write_model
from ortscan.modelio.replacing import Replacement
from ortscan.modelio.serialising import external_slots, serialised
from ortscan.modelio.slots import Slot, tensor_slots
from ortscan.modelio.tensors import AbsentTensor, bytes_needed
from ortscan.modelio.with_data import SMALL, write_with_data
from rewrites.base.errors import ModelFileError

__all__ = ["give_back", "hand_back", "save"]


def give_back(loaded: LoadedModel, *, references: bool = False) -> onnx.ModelProto | ir.Model:
    """Return an ``ir.Model`` for one, a ``ModelProto`` for anything else, with the interface as declared.

    A model that came by path has its external data loaded (as ``onnx.load`` does) unless ``references`` asks for references,
    which are relative to the source's folder. Other models keep the references they came with.

    Raises:
        InvariantBroken: the interface is not what it was, or the model cannot be serialised.
    """
    restore_interface(loaded)
    settle_new_initializers(loaded)
    external = external_slots(tensor_slots(loaded.model))
    if loaded.kind == "ir":
        for slot in external:
            tensor = slot.get()
            if isinstance(tensor, AbsentTensor):
                slot.put(tensor.as_it_came())
        return loaded.model
    return serialised(loaded, external) if loaded.kind == "path" and not references else to_proto(loaded)


def hand_back(
    loaded: LoadedModel, output: str | os.PathLike[str] | None, unchanged: AnyModel | None = None
) -> onnx.ModelProto | ir.Model:
    """Write the model to ``output`` if that is given, and return it as ``give_back`` does.

    ``unchanged``: what it was loaded from, where nothing at all was done to it; a ModelProto or bytes come back as they are then.
    What comes back for a path, with an output, refers to the external data beside the output. Raises as ``save`` and ``give_back``.
    """
    if output is not None:
        save(loaded, output)
        if loaded.kind == "path":
            return onnx.load(output, load_external_data=False)
    if isinstance(unchanged, onnx.ModelProto):
        copy = onnx.ModelProto()
        copy.CopyFrom(unchanged)
        return copy
    return reading.parse(unchanged, "the given bytes") if isinstance(unchanged, bytes) else give_back(loaded)


def save(
    model: LoadedModel | ir.Model,
    path: str | os.PathLike[str],
    *,
    source: str | os.PathLike[str] | None = None,
    as_external_data: bool | None = None,
) -> None:
    """Write a model to ``path``; the suffix tells the format, as for ``onnx.save``.

    A ``LoadedModel`` is written with its interface as declared, an ``ir.Model`` as it is; neither is changed by it.
    Tensors of more than 1 KiB go to ``NAME.data`` beside the output if the model has external data, if asked to, or if the
    file would exceed 2 GB; smaller ones are always embedded. ``source`` is the file the model was read from. Files are
    written aside and then replace what is there, so the output may be the source.

    Raises:
        ModelFileError: nothing can be written there, or not in this form; what was there before is still there.
        InvariantBroken: the interface is not what it was, or the model cannot be serialised.
    """
    loaded = model if isinstance(model, LoadedModel) else load(model)
    restore_interface(loaded)
    settle_new_initializers(loaded)
    came_from = Path(source) if source is not None else loaded.source
    slots = list(tensor_slots(loaded.model))
    for slot in slots:
        tensor = slot.get()
        if isinstance(tensor, AbsentTensor):
            raise ModelFileError(f"{path} cannot be written: the external data of {tensor.name!r} cannot be read, as {tensor.why}.")
    try:
        target = destination(path, loaded.files)
        proto = None if _wants_data_file(slots, as_external_data) else serialised(loaded, external_slots(slots))
        if proto is not None and proto.ByteSize() > reading.PROTOBUF_LIMIT:
            if as_external_data is False:
                raise ModelFileError(f"{path} cannot be written: it would exceed 2 GB without external data.")
            proto = None
        if proto is None:
            write_with_data(loaded, slots, Path(path), target, came_from)
        else:
            with Replacement() as files:
                write_model(proto, target, files)
                files.commit()
    except OSError as error:
        raise ModelFileError(f"{path} cannot be written: {error.strerror or error}.") from None


def _wants_data_file(slots: Sequence[Slot], as_external_data: bool | None) -> bool:
    if as_external_data is not None:
        return as_external_data
    tensors = [slot.get() for slot in slots]
    is_used = any(isinstance(tensor, ir.ExternalTensor) and bytes_needed(tensor) > SMALL for tensor in tensors)
    return is_used or sum(map(bytes_needed, tensors)) > reading.PROTOBUF_LIMIT
