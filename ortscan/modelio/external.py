"""From a reference to external data to a tensor that reads it, or to words for why it cannot be read."""

import os
from collections.abc import Sequence

import onnx
import onnx_ir as ir

from ortscan.base.external_location import OutOfReach, real_path
from ortscan.modelio.data_files import DataFiles
from ortscan.modelio.protos import tensors_in
from ortscan.modelio.tensors import FileTensor, bytes_needed
from rewrites.base.errors import ModelFileError
from rewrites.base.plain_text import quoted

__all__ = ["check_references", "within_reach"]

_MOST_DIGITS = 18


def check_references(proto: onnx.ModelProto, name: str) -> None:
    """Raise ModelFileError where a reference names its file twice or not at all, or an offset or length is no number of bytes."""
    for tensor in tensors_in(proto):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        keys = [entry.key for entry in tensor.external_data]
        entries = {entry.key: entry.value for entry in tensor.external_data}
        what = f"{name}: the external data of {tensor.name!r}"
        if not entries.get("location"):
            raise ModelFileError(f"{what} has no location.")
        for key in ("location", "offset", "length"):
            if keys.count(key) > 1:
                raise ModelFileError(f"{what} has {keys.count(key)} entries {key!r}.")
            if key != "location" and not _is_number(entries.get(key, "0")):
                raise ModelFileError(f"{what} has the {key} {quoted(entries[key])}, not a number of bytes.")


def _is_number(text: str | bytes) -> bool:
    """Whether onnxruntime reads it as one; what is no UTF-8 comes as bytes."""
    return isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def within_reach(tensor: ir.ExternalTensor, folders: Sequence[str], files: DataFiles) -> FileTensor:
    """Return a tensor that reads what ``tensor`` refers to, looked for in the first of ``folders``.

    Raises:
        OutOfReach: there is no such data.
    """
    path = real_path(os.fspath(tensor.location), folders)
    if not tensor.valid():
        raise OutOfReach(f"was in {quoted(path)}, which has been overwritten since")
    if tensor.dtype == ir.DataType.STRING:
        raise OutOfReach("is text, which cannot be external")
    need, start = bytes_needed(tensor), tensor.offset or 0
    if need < 0 or (tensor.length is not None and tensor.length != need):
        raise OutOfReach(f"has {tensor.length} bytes where its shape needs {need}")
    try:
        data = files.get(path)
    except FileNotFoundError:
        raise OutOfReach(f"is in {quoted(path)}, which does not exist") from None
    except OSError as error:
        raise OutOfReach(f"is in {quoted(path)}, which cannot be read: {error.strerror}") from None
    if start + need > data.size:
        raise OutOfReach(f"ends at byte {start + need} of {quoted(path)}, which has {data.size} bytes")
    return FileTensor(tensor, data, folders[0])
