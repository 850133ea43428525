"""The tensors of a loaded model. They share only data with the caller's model or its files.

In ``onnx_ir``, a model, its clone and its protobuf may share a tensor object. If a value is renamed, ``onnx_ir`` writes the new
name into this object. Therefore each loaded model has its own tensor objects.
"""

import copy
import math
import os
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
import onnx
import onnx_ir as ir

from ortscan.base.paths import UnreadableData, data_file_path
from ortscan.modelio.data_files import DataFile, DataFiles
from rewrites.base.errors import UnsupportedModel
from rewrites.base.plain_text import quoted

__all__ = [
    "AbsentTensor",
    "FileTensor",
    "MessageTensor",
    "bytes_needed",
    "file_tensor_of",
    "own_tensor",
    "props_of",
    "reference_to",
]


class MessageTensor(ir.serde.TensorProtoTensor):
    """A tensor in a protobuf message.

    If the message belongs to the caller, renaming the tensor copies the message first.
    """

    __slots__ = ("_is_ours",)

    def __init__(self, message: onnx.TensorProto, *, is_ours: bool) -> None:
        super().__init__(message)
        self._is_ours = is_ours

    @property
    def name(self) -> str:
        """The name in the message."""
        return self.raw.name

    @name.setter
    def name(self, value: str | None) -> None:
        if value == self.raw.name:
            return
        if not self._is_ours:
            message = onnx.TensorProto()
            message.CopyFrom(self.raw)
            super().__init__(message)
            self._is_ours = True
        self.raw.name = value or ""

    @property
    def metadata_props(self) -> dict[str, str]:  # type: ignore[override]
        """An empty dict.

        Serialisation copies the message with its metadata, and would otherwise add the metadata twice.
        """
        return {}


class FileTensor(ir.ExternalTensor):
    """A tensor in a file of external data. It is serialised as a reference to the file."""

    __slots__ = ("data",)

    def __init__(self, like: ir.ExternalTensor, data: DataFile, base_dir: str) -> None:
        super().__init__(**_described(like), base_dir=base_dir)
        self.data = data

    def numpy(self) -> np.ndarray:
        """Return the array. The array is mapped from the file if its elements are whole bytes."""
        if self.size == 0:
            return np.empty(self.shape.numpy(), self.dtype.numpy())
        content = self.data.view(self.offset or 0, self.nbytes)
        if self.dtype.bitwidth < 8:
            message = onnx.TensorProto(data_type=self.dtype.value, dims=self.shape.numpy(), raw_data=bytes(content))
            return ir.serde.TensorProtoTensor(message).numpy()
        return np.frombuffer(content, np.dtype(self.dtype.numpy()).newbyteorder("<")).reshape(self.shape.numpy())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the array, for numpy."""
        return np.array(self.numpy(), dtype=dtype, copy=copy) if dtype is not None or copy else self.numpy()

    def tobytes(self) -> bytes:
        """Return the bytes as they are in the file."""
        return bytes(self.data.view(self.offset or 0, self.nbytes)) if self.size else b""

    def tofile(self, file: BinaryIO) -> None:
        """Append the bytes to ``file`` without loading them into memory."""
        self.data.append_to(file, self.offset or 0, self.nbytes)


class AbsentTensor(ir.ExternalTensor):
    """A reference to external data that cannot be read. The reference is kept unchanged.

    Reading the tensor raises UnsupportedModel, and ``valid()`` is False.
    """

    __slots__ = ("_was_valid", "why")

    def __init__(self, like: ir.ExternalTensor, why: str) -> None:
        super().__init__(**_described(like), base_dir=like.base_dir)
        self.why = why
        self._was_valid = like.valid()
        self.invalidate()

    def numpy(self, *_: Any, **__: Any) -> Any:
        """Raise UnsupportedModel."""
        raise UnsupportedModel(f"The data of {self.name!r} is needed but {self.why}.")

    __array__ = tobytes = tofile = numpy

    def original_reference(self) -> ir.ExternalTensor:
        """Return an ``ir.ExternalTensor`` that refers to the same data in the same file."""
        tensor = ir.ExternalTensor(**_described(self), base_dir=self.base_dir)
        if not self._was_valid:
            tensor.invalidate()
        return tensor


def own_tensor(tensor: ir.TensorProtocol, *, is_ours: bool) -> ir.TensorProtocol:
    """Return a new tensor object with the data of ``tensor``, which must not be external."""
    if isinstance(tensor, ir.serde.TensorProtoTensor):
        return MessageTensor(tensor.raw, is_ours=is_ours)
    return tensor if is_ours else copy.copy(tensor)


def props_of(tensor: ir.TensorProtocol) -> dict[str, str]:
    """Return the metadata of a tensor."""
    if isinstance(tensor, MessageTensor):
        return {entry.key: entry.value for entry in tensor.raw.metadata_props}
    return dict(tensor.metadata_props)


def reference_to(
    tensor: ir.TensorProtocol, location: str, offset: int | None = None, length: int | None = None
) -> ir.ExternalTensor:
    """Return a tensor like ``tensor`` whose data is in the file ``location``."""
    return ir.ExternalTensor(
        location,
        offset,
        length,
        tensor.dtype,
        shape=ir.Shape(tensor.shape.numpy()),
        name=tensor.name or "",
        doc_string=tensor.doc_string,
        metadata_props=props_of(tensor),
    )


def bytes_needed(tensor: ir.TensorProtocol) -> int:
    """Return the size of the data of ``tensor`` in bytes, or 0 for strings."""
    return 0 if tensor.dtype in (ir.DataType.STRING, ir.DataType.UNDEFINED) else math.ceil(tensor.size * tensor.dtype.bitwidth / 8)


def _described(tensor: ir.ExternalTensor) -> dict[str, Any]:
    return {
        "location": tensor.location,
        "offset": tensor.offset,
        "length": tensor.length,
        "dtype": tensor.dtype,
        "shape": tensor.shape,
        "name": tensor.name,
        "doc_string": tensor.doc_string,
        "metadata_props": dict(tensor.metadata_props),
    }


def file_tensor_of(tensor: ir.ExternalTensor, folders: Sequence[str], files: DataFiles) -> FileTensor:
    """Return a tensor that reads the external data of ``tensor``.

    Args:
        tensor: the reference to the data. Its location is relative to ``folders[0]``.
        folders: the folders that may contain the data, from ``folders_of``.
        files: the open data files of the model. The file of this tensor is added.

    Raises:
        UnreadableData: the data cannot be read; see ``data_file_path``.
    """
    path = data_file_path(os.fspath(tensor.location), folders)
    if not tensor.valid():
        raise UnreadableData(f"was in {quoted(path)}, which has been overwritten since")
    if tensor.dtype == ir.DataType.STRING:
        raise UnreadableData("is text, which cannot be external")
    need, start = bytes_needed(tensor), tensor.offset or 0
    if need < 0 or (tensor.length is not None and tensor.length != need):
        raise UnreadableData(f"has {tensor.length} bytes, but its shape needs {need}")
    try:
        data = files.get(path)
    except FileNotFoundError:
        raise UnreadableData(f"is in {quoted(path)}, which does not exist") from None
    except OSError as error:
        raise UnreadableData(f"is in {quoted(path)}, which cannot be read: {error.strerror}") from None
    if start + need > data.size:
        raise UnreadableData(f"ends at byte {start + need} of {quoted(path)}, which has {data.size} bytes")
    return FileTensor(tensor, data, folders[0])
