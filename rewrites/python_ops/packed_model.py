"""A small model as text, for the attribute of a call: compressed, without weights worth mentioning."""

import base64
import zlib

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from rewrites.base.errors import UnsupportedModel

__all__ = ["pack", "unpack"]

_MOST_BYTES = 64 << 20
_REFERENCE = b"\x0a\x08location\x12"
"""How an entry of external data that says where begins."""


def pack(model: onnx.ModelProto) -> str:
    """Write it as text."""
    return base64.b85encode(zlib.compress(model.SerializeToString(deterministic=True), 9)).decode("ascii")


def unpack(text: str) -> onnx.ModelProto:
    """Read what ``pack`` wrote. Raises UnsupportedModel where it is something else, or is larger than what is called can be."""
    model, reader = onnx.ModelProto(), zlib.decompressobj()
    try:
        model.ParseFromString(reader.decompress(base64.b85decode(text), _MOST_BYTES))
    except (ValueError, TypeError, zlib.error, DecodeError) as error:
        raise UnsupportedModel(f"what a call of Python runs cannot be read: {type(error).__name__}: {error}.") from None
    if not reader.eof:
        raise UnsupportedModel(f"what a call of Python runs is cut short, or larger than {_MOST_BYTES} bytes.")
    if _REFERENCE in model.SerializeToString():
        raise UnsupportedModel("what a call of Python runs has external data.")
    return model
