"""From a file or bytes to a ``ModelProto``; whatever is not a model is one clear error that names where it came from."""

import itertools
import mmap
import os
import stat
from pathlib import Path
from typing import TypeVar

import onnx
from google.protobuf.json_format import ParseError as JsonError  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from google.protobuf.text_format import ParseError as TextError  # type: ignore[import-untyped]

from ortscan.base.paths import is_pipe
from ortscan.modelio.text_depth import DEEPEST_BRACKETS, nests_too_deep
from rewrites.base.errors import ModelFileError, UnsupportedModel

__all__ = ["PROTOBUF_LIMIT", "format_of", "parse", "read", "read_from_pipe", "require_model"]

PROTOBUF_LIMIT = (1 << 31) - 1
_OLDEST_IR = 3
_PART = 1 << 20
_T = TypeVar("_T")
_FOREIGN = {
    b"version https://git-lfs": "a Git LFS pointer, not the model itself (fetch it with `git lfs pull`)",
    b"PK\x03\x04": "a zip archive, not an ONNX model",
    b"\x89HDF": "an HDF5 file, not an ONNX model",
}


def format_of(path: Path) -> str:
    """Tell onnx's name of the format by the suffix: ``protobuf``, ``textproto``, ``json`` or ``onnxtxt``."""
    return onnx.serialization.registry.get_format_from_file_extension(path.suffix.lower()) or "protobuf"


def read(path: Path) -> onnx.ModelProto:
    """Read the model at ``path``, leaving external data where it is.

    Raises:
        ModelFileError: nothing can be read there, or what is there is not a model.
        UnsupportedModel: the model's format is older or newer than can be read in full.
    """
    name = str(path)
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            status = os.fstat(file.fileno())
            if stat.S_ISFIFO(status.st_mode):
                os.set_blocking(file.fileno(), True)
                parts = iter(lambda: file.read(_PART), b"")
                return parse(b"".join(itertools.islice(parts, PROTOBUF_LIMIT // _PART + 2)), name)
            if not stat.S_ISREG(status.st_mode):
                raise ModelFileError(f"{name} is neither a regular file nor a pipe.")
            if status.st_size == 0:
                raise ModelFileError(f"{name} is empty.")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise ModelFileError(f"{name} does not exist.") from None
    except IsADirectoryError:
        raise ModelFileError(f"{name} is a folder, not a model file.") from None
    except OSError as error:
        raise ModelFileError(f"{name} cannot be read: {error.strerror}.") from None
    return parse(memoryview(mapped), name, format_of(path))


def read_from_pipe(model: _T) -> _T | onnx.ModelProto:
    """Read the model where ``model`` is the path of a pipe; give anything else as it is. Raises as ``read`` does.

    Whoever needs a model more than once begins with this.
    """
    return read(Path(model)) if is_pipe(model) else model


def _without_waiting(path: str, flags: int) -> int:
    """Open a file, also a pipe that nobody writes to, which is found empty."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def parse(content: bytes | memoryview, name: str, form: str = "protobuf") -> onnx.ModelProto:
    """Parse a serialised model; ``name`` says in errors where it came from. Raises as ``read`` does."""
    head = bytes(content[:32])
    if not head:
        raise ModelFileError(f"{name} is empty.")
    foreign = next((what for magic, what in _FOREIGN.items() if head.startswith(magic)), None)
    if head[4:8] == b"ORTM":
        foreign = "in the ORT format; give the ONNX file it was made from"
    if foreign:
        raise ModelFileError(f"{name} is {foreign}.")
    if form == "protobuf" and len(content) > PROTOBUF_LIMIT:
        raise ModelFileError(f"{name} is larger than 2 GB, more than a protobuf message can be.")
    proto = onnx.ModelProto()
    try:
        if form == "protobuf":
            proto.ParseFromString(content)
        elif form == "onnxtxt":
            text = str(content, "utf-8")
            if nests_too_deep(text):
                raise UnsupportedModel(f"{name} has brackets nested more than {DEEPEST_BRACKETS} deep.")
            proto = onnx.parser.parse_model(text)
        else:
            proto = onnx.serialization.registry.get(form).deserialize_proto(bytes(content), proto)
    except (DecodeError, JsonError, TextError, onnx.parser.ParseError, UnicodeError):
        raise ModelFileError(f"{name} is not an ONNX model, or is cut short.") from None
    require_model(proto, name)
    return proto


def require_model(proto: onnx.ModelProto, name: str) -> None:
    """Raise unless ``proto`` has what every model has: a graph, operator sets, and a format version that can be read in full."""
    if not proto.HasField("graph") or not (proto.graph.node or proto.graph.output):
        raise ModelFileError(f"{name} holds no graph, so it is not an ONNX model.")
    if not proto.ir_version:
        raise ModelFileError(f"{name} has no ir_version, so it is not an ONNX model.")
    if proto.ir_version < _OLDEST_IR:
        raise UnsupportedModel(f"{name} has IR version {proto.ir_version}; versions before {_OLDEST_IR} had no operator sets.")
    if proto.ir_version > onnx.IR_VERSION:
        raise UnsupportedModel(
            f"{name} has IR version {proto.ir_version}; the newest that onnx {onnx.__version__} knows is {onnx.IR_VERSION}."
        )
    if not proto.opset_import:
        raise ModelFileError(f"{name} names no operator set (opset_import), so it is cut short or not an ONNX model.")
