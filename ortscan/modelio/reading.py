"""Read a file or bytes as a ``ModelProto``.

If the content is not a model, raise one clear error that names the source.

Works around ONNX-TEXT-DEPTH.
"""

import itertools
import mmap
import os
import re
import stat
from pathlib import Path
from typing import TypeVar

import onnx
from google.protobuf.json_format import ParseError as JsonError  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from google.protobuf.text_format import ParseError as TextError  # type: ignore[import-untyped]

from ortscan.base.paths import is_pipe
from rewrites.base.errors import ModelFileError, UnsupportedModel

__all__ = ["DEEPEST_BRACKETS", "PROTOBUF_LIMIT", "format_of", "nests_too_deep", "parse", "read", "read_from_pipe", "require_model"]

PROTOBUF_LIMIT = (1 << 31) - 1
DEEPEST_BRACKETS = 256
"""The deepest nesting of brackets. onnx's text parser recurses for each bracket and may crash. A nested graph needs three."""

_OLDEST_IR = 3
_PART = 1 << 20
_T = TypeVar("_T")
_TOKENS = re.compile(r'"(?:\\.|[^"\\])*"|#[^\n]*|[][(){}]', re.DOTALL)
_FOREIGN = {
    b"version https://git-lfs": "a Git LFS pointer, not the model itself (fetch it with `git lfs pull`)",
    b"PK\x03\x04": "a zip archive, not an ONNX model",
    b"\x89HDF": "an HDF5 file, not an ONNX model",
}


def format_of(path: Path) -> str:
    """Return onnx's name for the format of a suffix: ``protobuf``, ``textproto``, ``json`` or ``onnxtxt``."""
    return onnx.serialization.registry.get_format_from_file_extension(path.suffix.lower()) or "protobuf"


def read(path: Path) -> onnx.ModelProto:
    """Read the model at ``path`` without its external data.

    Raises:
        ModelFileError: the file cannot be read, or is not a model.
        UnsupportedModel: the model's format is too old or too new.
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


def _without_waiting(path: str, flags: int) -> int:
    """Open a file and return its descriptor.

    If the file is a pipe, do not wait until a process opens it for writing. If no process writes to the pipe, reading from it
    returns no bytes.
    """
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_from_pipe(model: _T) -> _T | onnx.ModelProto:
    """Read the model if ``model`` is a pipe, because a pipe can be read only once.

    Return any other value unchanged. Raise the errors of ``read``.
    """
    return read(Path(model)) if is_pipe(model) else model


def parse(content: bytes | memoryview, name: str, form: str = "protobuf") -> onnx.ModelProto:
    """Parse the serialised model ``content``, which has the format ``form``.

    Raise the errors of ``read``. Their messages call the model ``name``.
    """
    head = bytes(content[:32])
    if not head:
        raise ModelFileError(f"{name} is empty.")
    foreign = next((what for magic, what in _FOREIGN.items() if head.startswith(magic)), None)
    if head[4:8] == b"ORTM":
        foreign = "in the ORT format; pass the ONNX file that it was converted from"
    if foreign:
        raise ModelFileError(f"{name} is {foreign}.")
    if form == "protobuf" and len(content) > PROTOBUF_LIMIT:
        raise ModelFileError(f"{name} is larger than 2 GB, the limit of a protobuf message.")
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
        raise ModelFileError(f"{name} is not an ONNX model, or is truncated.") from None
    require_model(proto, name)
    return proto


def nests_too_deep(text: str) -> bool:
    """Return True if brackets outside strings and comments are nested more than DEEPEST_BRACKETS deep."""
    depth = 0
    for token in _TOKENS.finditer(text):
        mark = text[token.start()]
        if mark in "([{":
            depth += 1
            if depth > DEEPEST_BRACKETS:
                return True
        elif mark in ")]}":
            depth -= 1
    return False


def require_model(proto: onnx.ModelProto, name: str) -> None:
    """Raise ModelFileError if ``proto`` lacks a graph, an IR version or operator sets.

    Raise UnsupportedModel if the IR version is too old or too new. The messages call the model ``name``.
    """
    if not proto.HasField("graph") or not (proto.graph.node or proto.graph.output):
        raise ModelFileError(f"{name} has no graph, so it is not an ONNX model.")
    if not proto.ir_version:
        raise ModelFileError(f"{name} has no ir_version, so it is not an ONNX model.")
    if proto.ir_version < _OLDEST_IR:
        raise UnsupportedModel(f"{name} has IR version {proto.ir_version}; versions before {_OLDEST_IR} had no operator sets.")
    if proto.ir_version > onnx.IR_VERSION:
        raise UnsupportedModel(
            f"{name} has IR version {proto.ir_version}; onnx {onnx.__version__} supports at most {onnx.IR_VERSION}."
        )
    if not proto.opset_import:
        raise ModelFileError(f"{name} imports no operator set (opset_import), so it is truncated or not an ONNX model.")
