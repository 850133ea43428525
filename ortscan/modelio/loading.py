"""Load a caller's model as a copy that passes may change.

The caller's model is a path, bytes, a ``ModelProto`` or an ``onnx_ir.Model``.
"""

import copy
import os
from pathlib import Path
from typing import Literal

import onnx
import onnx_ir as ir

from ortscan.base.paths import UnreadableData, folders_of, is_path, leads_out
from ortscan.modelio.data_defects import refuse_defects_of_data, refuse_defects_of_references
from ortscan.modelio.data_files import DataFiles
from ortscan.modelio.defects import refuse_defects, refuse_depth, refuse_undefined_values
from ortscan.modelio.interface import Interface
from ortscan.modelio.listed_weights import unlist_weights
from ortscan.modelio.loaded import LoadedModel, reason_of
from ortscan.modelio.mending import declare_first_types, free_negative_sizes, is_sorted, sort_nodes, tie_outputs
from ortscan.modelio.protos import hide_map_types
from ortscan.modelio.reading import parse, read, require_model
from ortscan.modelio.refusals import refuse_ambiguous_names, refuse_endless_calls, refuse_newer_operators, refuse_what_would_be_lost
from ortscan.modelio.slots import graphs_in, tensor_slots
from ortscan.modelio.tensors import AbsentTensor, FileTensor, file_tensor_of, own_tensor
from ortscan.ort.installed import newest_opset
from rewrites.base.errors import ModelFileError, OptionError, UnsupportedModel
from rewrites.base.plain_text import shown
from rewrites.graph.walk import all_nodes

__all__ = ["AnyModel", "ModelLike", "load"]

ModelLike = str | os.PathLike[str] | bytes | onnx.ModelProto | ir.Model
AnyModel = ModelLike | LoadedModel
_Kind = Literal["path", "bytes", "proto", "ir"]


def load(model: AnyModel, *, source: str | os.PathLike[str] | None = None) -> LoadedModel:
    """Return a copy of the caller's model that may be changed.

    External data is mapped when it is first read. References in ``bytes`` or a ``ModelProto`` are relative to the folder of
    ``source``, the file that the model was read from. Without a source they are relative to the working folder, as in onnxruntime.
    If external data cannot be read, a model that was passed as bytes, a ``ModelProto`` or an onnx_ir Model keeps the reference.

    Raises:
        OptionError: ``model`` has another type.
        ModelFileError: the file is not a model, its external data is missing or truncated, or a reference leaves the model's
            folder.
        UnsupportedModel: the model is invalid, or has something that ``onnx_ir`` cannot represent.
    """
    if isinstance(model, LoadedModel):
        return _from_loaded(model)
    if isinstance(model, ir.Model):
        return _from_ir(model)
    if isinstance(model, onnx.ModelProto):
        require_model(model, "the given ModelProto")
        return _from_proto(model, "proto", "the given ModelProto", None if source is None else _path(source))
    if isinstance(model, bytes | bytearray | memoryview):
        proto = parse(bytes(model), "the given bytes")
        return _from_proto(proto, "bytes", "the given bytes", None if source is None else _path(source))
    if isinstance(model, str | os.PathLike):
        path = _path(model)
        return _from_proto(read(path), "path", str(path), path)
    raise OptionError(f"A model is a path, bytes, an onnx.ModelProto or an onnx_ir.Model, not {type(model).__name__}.")


def _path(path: str | os.PathLike[str]) -> Path:
    if not is_path(path):
        raise ModelFileError(f"{shown(path)} is not a path.")
    return Path(path)


def _from_proto(proto: onnx.ModelProto, kind: _Kind, name: str, source: Path | None) -> LoadedModel:
    refuse_what_would_be_lost(proto, name)
    refuse_endless_calls(proto, name)
    refuse_defects_of_data(proto, name)
    refuse_defects_of_references(proto, name)
    try:
        plain = hide_map_types(proto, name)
        model = ir.from_proto(plain)
        declare_first_types(model, plain)
    except ir.serde.SerdeError as error:
        raise UnsupportedModel(f"{name} is not a valid model: {reason_of(error)}") from error
    tied = tie_outputs(model)
    refuse_undefined_values(model, name)
    _sort(model, name)
    folders = folders_of(str(source)) if source is not None else [os.getcwd()]
    files = DataFiles()
    for slot in tensor_slots(model):
        tensor = slot.get()
        if not isinstance(tensor, ir.ExternalTensor):
            slot.put(own_tensor(tensor, is_ours=kind != "proto"))
            continue
        try:
            slot.put(file_tensor_of(tensor, folders, files))
        except UnreadableData as error:
            if kind == "path" or leads_out(os.fspath(tensor.location)):
                raise ModelFileError(f"{name}: the external data of {shown(tensor.name)} {error}.") from None
            slot.put(AbsentTensor(tensor, f"it {error}; pass the model as a path"))
    loaded = _loaded(model, name, kind, source, files, proto)
    loaded.tied = tied
    return loaded


def _from_ir(original: ir.Model) -> LoadedModel:
    name = "the given onnx_ir.Model"
    refuse_endless_calls(original, name)
    refuse_depth(original, name)
    refuse_undefined_values(original, name)
    model = _copied(original, name)
    _sort(model, name)
    _cut_shared_parts(model)
    files = DataFiles()
    for slot in tensor_slots(model):
        tensor = slot.get()
        if not isinstance(tensor, ir.ExternalTensor):
            slot.put(own_tensor(tensor, is_ours=False))
            continue
        if isinstance(tensor, FileTensor):
            slot.put(FileTensor(tensor, tensor.data, os.fspath(tensor.base_dir)))
            continue
        if isinstance(tensor, AbsentTensor):
            slot.put(AbsentTensor(tensor, tensor.why))
            continue
        folders = folders_of(os.path.join(os.fspath(tensor.base_dir), "model"))
        try:
            own = file_tensor_of(tensor, folders, files)
            own.data.readers.append(tensor)
            slot.put(own)
        except UnreadableData as error:
            slot.put(AbsentTensor(tensor, f"it {error}; pass the model as a path"))
    return _loaded(model, name, "ir", None, files, None)


def _from_loaded(loaded: LoadedModel) -> LoadedModel:
    copy = _from_ir(loaded.model)
    copy.kind, copy.source, copy.interface, copy.files = loaded.kind, loaded.source, loaded.interface, loaded.files
    copy.listed, copy.tied, copy.built_in = loaded.listed, list(loaded.tied), list(loaded.built_in)
    return copy


def _copied(original: ir.Model, name: str) -> ir.Model:
    if is_sorted(original):
        model = original.clone()
    else:
        try:
            model = ir.from_proto(ir.to_proto(original))
        except ir.serde.SerdeError as error:
            raise UnsupportedModel(f"{name} is not a valid model: {reason_of(error)}") from error
        for slot, original_slot in zip(tensor_slots(model), tensor_slots(original), strict=True):
            slot.put(original_slot.get())
    model.meta.update(original.meta)
    return model


def _loaded(
    model: ir.Model, name: str, kind: _Kind, source: Path | None, files: DataFiles, proto: onnx.ModelProto | None
) -> LoadedModel:
    for imports in (model.opset_imports, *(function.opset_imports for function in model.functions.values())):
        if "ai.onnx" in imports:
            imports.setdefault("", imports.pop("ai.onnx"))
    if "" not in model.opset_imports and any(node.domain in ("", "ai.onnx") for node in all_nodes(model.graph)):
        # if a model imports only other operator sets, onnxruntime uses the newest opset
        model.opset_imports[""] = newest_opset()
    refuse_newer_operators(model, name)
    refuse_ambiguous_names(model, name)
    free_negative_sizes(model)
    listed = unlist_weights(model)
    refuse_defects(model, name)
    return LoadedModel(model, kind, source, Interface.of(model, proto), listed, files)


def _sort(model: ir.Model, name: str) -> None:
    try:
        sort_nodes(model)
    except ValueError:
        raise UnsupportedModel(f"{name} is not a valid model: its nodes form a cycle.") from None


def _cut_shared_parts(model: ir.Model) -> None:
    """Copy the mutable parts that a clone shares with its original: types, and tensors of inner values."""
    for graph in graphs_in(model):
        for value in (*graph.inputs, *graph.initializers.values(), *(output for node in graph for output in node.outputs)):
            value.type = copy.deepcopy(value.type)
            if not value.is_initializer():
                value.const_value = None
