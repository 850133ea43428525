"""Encodes the inputs and results of calls for the Python operator.

A Python operator of onnxruntime-extensions has a fixed number of inputs and outputs of fixed types, and no operator may be added
once a session exists. So all calls use one operator, which has one input and one output of each element type: the *slot* of this
type. All values of a type share its slot:

* One value of a type: the slot holds the value unchanged.
* Several values of a type: the slot is packed. It holds the flattened values, one after the other. Their shapes come first in the
  int64 slot, which is then packed too.
* No value of a type: the slot holds an empty tensor.

Results are encoded in the same way, but their int64 slot is always packed. It starts with the facts of each result. These are its
start and end in its slot, if this slot is packed, and then its shape. A type without a slot uses the slot of a wider type. A call
holds its model as compressed text. Such a model has no large weights.
"""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from rewrites.base.errors import UnsupportedModel

__all__ = [
    "CARRIERS",
    "META",
    "SLOTS",
    "TEXT",
    "CallSpec",
    "Port",
    "is_packed",
    "meta_length",
    "meta_offsets",
    "needs_shapes",
    "pack",
    "parse_spec",
    "unpack",
]


_MOST_BYTES = 64 << 20
_REFERENCE = b"\x0a\x08location\x12"
"""The bytes that start the location of external data in a serialised model."""


def pack(model: onnx.ModelProto) -> str:
    """Return ``model`` as compressed text."""
    return base64.b85encode(zlib.compress(model.SerializeToString(deterministic=True), 9)).decode("ascii")


def unpack(text: str) -> onnx.ModelProto:
    """Return the model that ``pack`` wrote as ``text``.

    Raise UnsupportedModel if the text is invalid or the model is too large.
    """
    model, reader = onnx.ModelProto(), zlib.decompressobj()
    try:
        model.ParseFromString(reader.decompress(base64.b85decode(text), _MOST_BYTES))
    except (ValueError, TypeError, zlib.error, DecodeError) as error:
        raise UnsupportedModel(f"the model in a call of Python cannot be read: {type(error).__name__}: {error}.") from None
    if not reader.eof:
        raise UnsupportedModel(f"the model in a call of Python is truncated, or larger than {_MOST_BYTES} bytes.")
    if _REFERENCE in model.SerializeToString():
        raise UnsupportedModel("the model in a call of Python has external data.")
    return model


SLOTS = ("float", "double", "int64", "int32", "bool", "string", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
"""The element types of the operator's inputs, and of its outputs, in order."""

TEXT = "string"
"""The slot of strings. onnxruntime-extensions truncates strings for Python at a null character, and crashes on a string
that is not UTF-8. So a call may return strings, but may not read them."""

META = "int64"
"""The slot that also holds shapes and other facts of the values."""

CARRIERS = {
    **{name: name for name in SLOTS},
    **dict.fromkeys(("float16", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"), "float"),
    "int4": "int8",
    "uint4": "uint8",
}
"""The slot for each element type. A call cannot pass other types, such as complex numbers and sequences."""


@dataclass(frozen=True)
class Port:
    """One value of a call: its element type (onnx's name in lower case) and its rank."""

    kind: str
    rank: int

    @property
    def slot(self) -> str:
        """Return the slot that holds the value."""
        return CARRIERS[self.kind]


@dataclass(frozen=True)
class CallSpec:
    """The inputs, outputs and ``payload`` of a call. ``what`` names the format of the payload."""

    what: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    payload: Mapping[str, Any]

    def text(self) -> str:
        """Return the text for the attribute of a call. The text has no floats, because they would lose digits."""
        ports = {name: [[p.kind, p.rank] for p in getattr(self, name)] for name in ("inputs", "outputs")}
        return json.dumps({"what": self.what, **ports, "payload": self.payload}, sort_keys=True, separators=(",", ":"))


def parse_spec(text: str) -> CallSpec:
    """Return the description that ``CallSpec.text`` wrote as ``text``.

    Raise UnsupportedModel if the text is invalid.
    """
    try:
        plain = json.loads(text)
        what, payload = plain["what"], plain["payload"]
        inputs, outputs = (tuple(_port(*port) for port in plain[name]) for name in ("inputs", "outputs"))
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise UnsupportedModel(f"a call of Python cannot be read: {type(error).__name__}: {error}.") from None
    if not isinstance(what, str) or not isinstance(payload, Mapping):
        raise UnsupportedModel("a call of Python cannot be read: 'what' or 'payload' is invalid.")
    if any(port.slot == TEXT for port in inputs):
        raise UnsupportedModel("a call of Python reads strings, which do not all reach Python unchanged.")
    return CallSpec(what, inputs, outputs, payload)


def _port(kind: str, rank: int) -> Port:
    if kind not in CARRIERS or not isinstance(rank, int) or rank < 0:
        raise ValueError(f"{kind!r} of rank {rank!r} is not a value")
    return Port(kind, rank)


def needs_shapes(ports: Sequence[Port]) -> bool:
    """Return True if a call must pass the shapes of its inputs ``ports``: if several share a slot."""
    slots = [port.slot for port in ports]
    return len(set(slots)) < len(slots)


def is_packed(ports: Sequence[Port], slot: str, *, results: bool) -> bool:
    """Return True if ``slot`` is packed, that is, holds flattened values.

    ``results``: True if ``ports`` are the results of a call, False if they are its inputs.
    """
    count = sum(port.slot == slot for port in ports)
    if slot == META:
        return results or (needs_shapes(ports) and count > 0)
    return count > 1


def meta_offsets(outputs: Sequence[Port]) -> list[int]:
    """Return, for each result of a call, where the facts of the result start in the int64 slot.

    The facts are the shape of the result. If the slot of the result is packed, its start and end in this slot come before the
    shape.
    """
    offsets, at = [], 0
    for port in outputs:
        offsets.append(at)
        at += port.rank + (2 if is_packed(outputs, port.slot, results=True) else 0)
    return offsets


def meta_length(outputs: Sequence[Port]) -> int:
    """Return the number of integers in the int64 slot that hold facts of the results ``outputs``."""
    return sum(port.rank + (2 if is_packed(outputs, port.slot, results=True) else 0) for port in outputs)
