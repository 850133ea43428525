"""Return a loaded model as the type of the caller's model, or write it to a file."""

import os
from collections.abc import Sequence
from pathlib import Path

import onnx
import onnx_ir as ir

from ortscan.base.proto_graphs import default_opset
from ortscan.modelio import reading
from ortscan.modelio.destination import Replacement, destination, write_model
from ortscan.modelio.loaded import LoadedModel, restore_interface, settle_new_initializers, to_proto
from ortscan.modelio.loading import load
from ortscan.modelio.slots import Slot, tensor_slots
from ortscan.modelio.tensors import AbsentTensor, bytes_needed
from ortscan.modelio.with_data import SMALL, external_slots, serialised, write_with_data
from rewrites.base.errors import ModelFileError

__all__ = ["return_model", "save", "to_caller_type"]


def to_caller_type(loaded: LoadedModel, *, references: bool = False) -> onnx.ModelProto | ir.Model:
    """Return the model as an ``ir.Model`` if the caller passed one, else as a ``ModelProto``.

    The result has the declared interface.

    The external data of a model that was read from a path is loaded, as ``onnx.load`` does, unless ``references`` is True.
    References are relative to the source's folder. Other models keep their references.

    Raises:
        InvariantBroken: the interface has changed, or the model cannot be serialised.
    """
    restore_interface(loaded)
    settle_new_initializers(loaded)
    external = external_slots(tensor_slots(loaded.model))
    unchanged = None if loaded.kind == "path" and external else _unchanged_proto(loaded)
    if unchanged is not None:
        return unchanged
    if loaded.kind == "ir":
        for slot in external:
            tensor = slot.get()
            if isinstance(tensor, AbsentTensor):
                slot.put(tensor.original_reference())
        return loaded.model
    return serialised(loaded, external) if loaded.kind == "path" and not references else to_proto(loaded)


def _unchanged_proto(loaded: LoadedModel) -> onnx.ModelProto | None:
    """Return a copy of the caller's model if nothing changed it, else None.

    Also return None if the caller's model is no message, or imports no version of ONNX's default operator set. The loaded model
    imports the version that onnxruntime assumes.
    """
    model = loaded.unchanged
    if isinstance(model, onnx.ModelProto):
        proto = onnx.ModelProto()
        proto.CopyFrom(model)
    elif isinstance(model, str | os.PathLike):
        proto = reading.read(Path(model))
    elif isinstance(model, bytes | bytearray | memoryview):
        proto = reading.parse(bytes(model), "the given bytes")
    else:
        return None
    return proto if default_opset(proto.opset_import) is not None else None


def return_model(loaded: LoadedModel, output: str | os.PathLike[str] | None) -> onnx.ModelProto | ir.Model:
    """Write the model to ``output`` if it is not None. Return the model as the type of the caller's model.

    Args:
        loaded: the model.
        output: the path to write to, or None.

    Returns:
        * If the model was read from a path and written to ``output``: the written model, with references to its external data.
        * Otherwise the result of ``to_caller_type``.

    Raises:
        OrtscanError: see ``save`` and ``to_caller_type``.
    """
    if output is not None:
        save(loaded, output)
        if loaded.kind == "path":
            return onnx.load(output, load_external_data=False)
    return to_caller_type(loaded)


def save(
    model: LoadedModel | ir.Model,
    path: str | os.PathLike[str],
    *,
    source: str | os.PathLike[str] | None = None,
    as_external_data: bool | None = None,
) -> None:
    """Write a model to ``path``, which may be its source, in the format of the suffix (as ``onnx.save``).

    A ``LoadedModel`` is written with its declared interface, an ``ir.Model`` as it is. Neither is changed.

    Args:
        model: the model.
        path: the file to write.
        source: the file that the model was read from.
        as_external_data: True to write tensors of more than 1 KiB to ``NAME.data`` next to the output, False to embed all. The
            default is True if the model has external data or the file would exceed 2 GB.

    Raises:
        ModelFileError: the model cannot be written there, or not in this format. Existing files stay.
        InvariantBroken: the interface has changed, or the model cannot be serialised.
    """
    loaded = model if isinstance(model, LoadedModel) else load(model)
    restore_interface(loaded)
    settle_new_initializers(loaded)
    came_from = Path(source) if source is not None else loaded.source
    slots = list(tensor_slots(loaded.model))
    for slot in slots:
        tensor = slot.get()
        if isinstance(tensor, AbsentTensor):
            raise ModelFileError(
                f"{path} cannot be written: the external data of {tensor.name!r} cannot be read, because {tensor.why}."
            )
    try:
        target = destination(path, loaded.files)
        external = external_slots(slots)
        proto = None if external else _unchanged_proto(loaded)
        if _wants_data_file(slots, as_external_data):
            proto = None
        elif proto is None:
            proto = serialised(loaded, external)
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
