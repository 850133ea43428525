"""From what a caller gives a session as its model to what onnxruntime takes: a path or bytes."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ortscan.base.paths import is_pipe
from ortscan.base.temporary import TemporaryFolder

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

    SessionModel = str | os.PathLike[str] | bytes | onnx.ModelProto | ir.Model

__all__ = ["as_path_or_bytes"]


def as_path_or_bytes(model: Any) -> tuple[Any, Any]:
    """Return as bytes what is read from a pipe, a ModelProto, and an onnx_ir Model.

    Where a model is too large for bytes, or has its own folders, give the path of a temporary file.
    The second thing given keeps that file alive. Whatever else comes is given back as it is, for onnxruntime to take or refuse.
    """
    if is_pipe(model):
        return Path(model).read_bytes(), None
    kind = f"{type(model).__module__}.{type(model).__name__}"
    if not (hasattr(model, "SerializeToString") or kind.startswith("onnx_ir.")):
        return model, None
    import onnx
    import onnx_ir as ir

    from ortscan.modelio import load, save
    from ortscan.modelio.reading import PROTOBUF_LIMIT
    from ortscan.session.optimizing import serialised_with_references

    if not isinstance(model, onnx.ModelProto | ir.Model):
        return model, None
    if isinstance(model, onnx.ModelProto) and model.ByteSize() <= PROTOBUF_LIMIT:
        return model.SerializeToString(), None
    loaded = load(model)
    message = serialised_with_references(loaded) if isinstance(model, ir.Model) else None
    if message is not None and not message[1]:
        return message[0], None
    holder = TemporaryFolder()
    save(loaded, holder.path / "model.onnx")
    return str(holder.path / "model.onnx"), holder
