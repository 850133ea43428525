"""Writes a model to its file, in the format that the suffix tells."""

from pathlib import Path

import onnx

from ortscan.modelio import reading
from ortscan.modelio.replacing import Replacement
from rewrites.base.errors import ModelFileError

__all__ = ["write_model"]


def write_model(proto: onnx.ModelProto, target: Path, files: Replacement) -> None:
    """Write ``proto`` to what is to become ``target``. Raises ModelFileError where the format does not hold it, and OSError."""
    form = reading.format_of(target)
    if proto.ByteSize() > reading.PROTOBUF_LIMIT:
        raise ModelFileError(f"{target} cannot be written: it would exceed 2 GB without its initializers.")
    if form == "onnxtxt":
        content = onnx.printer.to_text(proto).encode()
    else:
        content = onnx.serialization.registry.get(form).serialize_proto(proto)
    if form != "protobuf" and reading.parse(content, str(target), form) != proto:
        raise ModelFileError(f"{target} cannot be written: the {form} format does not hold all of this model; write .onnx instead.")
    files.open(target).write(content)
