"""Open any kind of model in two forms: a protobuf to read, and a path or bytes for onnxruntime.

The protobuf has no external data. A path is passed to onnxruntime unchanged. A model of another kind becomes bytes. If it is too
large for bytes, or has weights in several folders, it is written to a temporary folder instead.
"""

import math
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx_ir as ir

from ortscan.base.paths import is_path
from ortscan.base.proto_graphs import all_graphs
from ortscan.base.temporary import TemporaryFolder
from ortscan.modelio import LoadedModel, reading, save, to_proto
from ortscan.modelio.loading import AnyModel
from ortscan.modelio.refusals import refuse_endless_calls
from ortscan.modelio.slots import ir_with_own_tensors, tensor_slots
from ortscan.ort.element_types import numpy_type
from rewrites.base.errors import ModelFileError, OptionError
from rewrites.base.plain_text import quoted, shown

__all__ = ["ModelSource", "changed_source", "initializer_bytes", "model_of", "open_source"]

_LARGEST_BYTES = 2**31 - 2**27


@dataclass(frozen=True)
class ModelSource:
    """A model to read and to run.

    Attributes:
        proto: the model as a protobuf without external data. It must not be changed.
        target: the path or bytes that a session opens.
        folder: the folder of the external data if ``target`` is bytes. None means the working folder.
    """

    proto: onnx.ModelProto
    target: str | bytes
    folder: str | None = None


def open_source(model: AnyModel, stack: ExitStack) -> ModelSource:
    """Return ``model`` in a form that can be read and run.

    Temporary files are removed when ``stack`` closes.

    Raises:
        ModelFileError: the file is missing or is not an ONNX model.
        UnsupportedModel: its format is too old or too new, or its functions have too many calls.
        OptionError: ``model`` has another type.
    """
    source = _opened(model, stack)
    refuse_endless_calls(source.proto, quoted(model) if isinstance(model, str | os.PathLike) else "the given model")
    return source


def _opened(model: AnyModel, stack: ExitStack) -> ModelSource:
    if isinstance(model, str | os.PathLike):
        if not is_path(model):
            raise ModelFileError(f"{shown(model)} is not a path.")
        path = Path(model)
        proto = reading.read(path)
        return (
            ModelSource(proto, str(path)) if reading.format_of(path) == "protobuf" else _from_proto(proto, stack, str(path.parent))
        )
    if isinstance(model, bytes | bytearray | memoryview):
        data = bytes(model)
        return ModelSource(reading.parse(data, "the given bytes"), data)
    if isinstance(model, onnx.ModelProto):
        reading.require_model(model, "the given model")
        return _from_proto(model, stack, None)
    if isinstance(model, ir.Model):
        return _from_ir(model, stack)
    if isinstance(model, LoadedModel):
        return _from_loaded(model, stack)
    raise OptionError(f"a model must be a path, bytes, onnx.ModelProto or onnx_ir.Model, not {type(model).__name__}")


def model_of(source: ModelSource) -> ir.Model:
    """Return a copy of the model of ``source``.

    The copy reads external data from the same folder as onnxruntime.
    """
    return _with_base_dir(ir_with_own_tensors(source.proto), _folder_of(source))


def changed_source(source: ModelSource, proto: onnx.ModelProto, stack: ExitStack) -> ModelSource:
    """Return a source for the model ``proto``.

    ``proto`` is a changed copy of ``source.proto``, and refers to the same external data. Temporary files are removed when
    ``stack`` closes.
    """
    return _from_proto(proto, stack, _folder_of(source))


def _folder_of(source: ModelSource) -> str | None:
    return os.path.dirname(os.path.abspath(source.target)) if isinstance(source.target, str) else source.folder


def initializer_bytes(proto: onnx.ModelProto) -> int:
    """Return the size in bytes of all initializers, including external data."""
    tensors = [tensor for graph in all_graphs(proto) for tensor in graph.initializer]
    return sum(math.prod(tensor.dims) * max(1, numpy_type(tensor.data_type).itemsize) for tensor in tensors)


def _from_proto(proto: onnx.ModelProto, stack: ExitStack, folder: str | None) -> ModelSource:
    if _data_bytes(proto) <= _LARGEST_BYTES:
        return ModelSource(proto, proto.SerializeToString(), folder)
    return _through_folder(_with_base_dir(ir_with_own_tensors(proto), folder), stack)


def _with_base_dir(model: ir.Model, folder: str | None) -> ir.Model:
    for tensor in _external_tensors(model):
        tensor.base_dir = folder or ""
    return model


def _from_ir(model: ir.Model, stack: ExitStack) -> ModelSource:
    folders = _folders(model)
    if len(folders) > 1:
        return _through_folder(model.clone(), stack)
    return _from_proto(ir.to_proto(model), stack, folders.pop() if folders else None)


def _from_loaded(loaded: LoadedModel, stack: ExitStack) -> ModelSource:
    folders = _folders(loaded.model)
    proto = to_proto(loaded)
    if len(folders) > 1 or _data_bytes(proto) > _LARGEST_BYTES or any(map(_is_linked_away, _external_tensors(loaded.model))):
        return _through_folder(loaded, stack)
    return ModelSource(proto, proto.SerializeToString(), folders.pop() if folders else None)


def _through_folder(model: ir.Model | LoadedModel, stack: ExitStack) -> ModelSource:
    path = stack.enter_context(TemporaryFolder()) / "model.onnx"
    save(model, path, as_external_data=True if isinstance(model, ir.Model) else None)
    return ModelSource(reading.read(path), str(path))


def _folders(model: ir.Model) -> set[str]:
    return {os.path.abspath(tensor.base_dir) for tensor in _external_tensors(model)}


def _is_linked_away(tensor: ir.ExternalTensor) -> bool:
    """Return True if the path of the data leads through a link to another folder.

    onnxruntime follows such a link only if it opens the model by path.
    """
    folder = os.path.realpath(tensor.base_dir)
    return os.path.commonpath([folder, os.path.realpath(os.path.join(folder, tensor.location))]) != folder


def _external_tensors(model: ir.Model) -> Iterator[ir.ExternalTensor]:
    for slot in tensor_slots(model):
        tensor = slot.get()
        if isinstance(tensor, ir.ExternalTensor):
            yield tensor


def _data_bytes(proto: onnx.ModelProto) -> int:
    """Return the approximate size of ``proto`` in bytes, without external data.

    Only initializers are counted, because the other fields of ``proto`` are small.
    """
    return sum(
        len(tensor.raw_data) + 4 * len(tensor.float_data) + 8 * len(tensor.double_data) + 8 * len(tensor.int64_data)
        for graph in all_graphs(proto)
        for tensor in graph.initializer
    )
