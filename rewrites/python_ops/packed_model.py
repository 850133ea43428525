"""A small model as text, for the attribute of a call: compressed, without weights worth mentioning."""

import base64
import zlib

import onnx

__all__ = ["pack", "unpack"]


def pack(model: onnx.ModelProto) -> str:
    """Write it as text."""
    return base64.b85encode(zlib.compress(model.SerializeToString(deterministic=True), 9)).decode("ascii")


def unpack(text: str) -> onnx.ModelProto:
    """Read what ``pack`` wrote."""
    model = onnx.ModelProto()
    model.ParseFromString(zlib.decompress(base64.b85decode(text)))
    return model
