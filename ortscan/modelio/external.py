"""From a reference to external data to a tensor that reads it, or to words for why it cannot be read.

What is read is what ORT would read: a regular file below the model's own folder (as given, or where a symbolic link to the
model leads), named by a relative path, and long enough.
"""

import os
from collections.abc import Sequence

import onnx
import onnx_ir as ir

from ortscan.modelio.data_files import DataFiles
from ortscan.modelio.protos import tensors_in
from ortscan.modelio.tensors import FileTensor, bytes_needed
from rewrites.errors import ModelFileError

__all__ = ["OutOfReach", "check_references", "folders_of", "within_reach"]


class OutOfReach(Exception):
    """Why external data cannot be read; the text completes "external data of X ..."."""


def check_references(proto: onnx.ModelProto, name: str) -> None:
    """Raise ModelFileError where a reference has no location, or an offset or length that is no number of bytes."""
    for tensor in tensors_in(proto):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        entries = {entry.key: entry.value for entry in tensor.external_data}
        if "location" not in entries:
            raise ModelFileError(f"{name}: the external data of {tensor.name!r} has no location.")
        for key in ("offset", "length"):
            if not entries.get(key, "0").isdecimal():
                what = f"the external data of {tensor.name!r} has the {key} {entries[key]!r}"
                raise ModelFileError(f"{name}: {what}, not a number of bytes.")


def folders_of(path: str) -> list[str]:
    """Give the folders that the data of the model at ``path`` may be in: the one looked in comes first."""
    return [os.path.dirname(os.path.abspath(path)), os.path.dirname(os.path.realpath(path))]


def within_reach(tensor: ir.ExternalTensor, folders: Sequence[str], files: DataFiles) -> FileTensor:
    """Give a tensor that reads what ``tensor`` refers to, looked for in the first of ``folders``.

    With no folders, the tensor's own ``path`` is taken as it is.

    Raises:
        OutOfReach: there is no such data.
    """
    location = os.fspath(tensor.location)
    if folders and (not location or os.path.isabs(location)):
        raise OutOfReach(f"has the location {location!r}, which is not a relative path")
    path = os.path.join(folders[0], location) if folders else os.path.abspath(tensor.path)
    if folders and not any(_is_below(path, folder) for folder in folders):
        raise OutOfReach(f"is {path}, which leaves the model's folder")
    if not tensor.valid():
        raise OutOfReach(f"was in {path}, which has been overwritten since")
    if tensor.dtype == ir.DataType.STRING:
        raise OutOfReach("is text, which cannot be external")
    need, start = bytes_needed(tensor), tensor.offset or 0
    if tensor.length is not None and tensor.length != need:
        raise OutOfReach(f"has {tensor.length} bytes where its shape needs {need}")
    try:
        data = files.get(path)
    except FileNotFoundError:
        raise OutOfReach(f"is in {path}, which does not exist") from None
    except OSError as error:
        raise OutOfReach(f"is in {path}, which cannot be read: {error.strerror}") from None
    if start + need > data.size:
        raise OutOfReach(f"ends at byte {start + need} of {path}, which has {data.size} bytes")
    return FileTensor(tensor, data, folders[0] if folders else os.fspath(tensor.base_dir))


def _is_below(path: str, folder: str) -> bool:
    root = os.path.realpath(folder)
    return os.path.commonpath([os.path.realpath(path), root]) == root
