"""How the values of a call travel through the one Python operator there is, which has one tensor of each type in and out.

A Python operator of onnxruntime-extensions has a fixed number of inputs and outputs of fixed types, and no operator may be added
once a session has been made. So there is one operator for all calls. It has a *slot* for each element type; values of one type
share its slot:

* one value of a type: it is in the slot as it is;
* several (or, where anything is packed, any int64): flattened, one after the other; their shapes come first in the int64 slot;
* none: an empty tensor.

Results come back the same way, but int64 always packed: first, for each result, the shape that it is to be given (and for packed
ones where it starts and ends), then the numbers. A type without a slot travels as one that holds all its values.

A small model as text, for the attribute of a call: compressed, without weights worth mentioning.
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


SLOTS = ("float", "double", "int64", "int32", "bool", "string", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
"""The element types of the operator's inputs, and of its outputs, in order."""

TEXT = "string"
"""The slot of strings. onnxruntime-extensions cuts one that it hands to Python at a null character, and ends the process on one
that is not UTF-8: a call may give strings, but is not given any."""

META = "int64"
"""The slot in which shapes travel."""

CARRIERS = {
    **{name: name for name in SLOTS},
    **dict.fromkeys(("float16", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"), "float"),
    "int4": "int8",
    "uint4": "uint8",
}
"""The slot in which values of a type travel; types that are not here (complex numbers, sequences) cannot."""


@dataclass(frozen=True)
class Port:
    """One value of a call: its element type by onnx's name in small letters, and its rank."""

    kind: str
    rank: int

    @property
    def slot(self) -> str:
        """The type it travels as."""
        return CARRIERS[self.kind]


@dataclass(frozen=True)
class CallSpec:
    """What a call is: its values, and what is to be done with them (``payload``, which ``what`` says how to read)."""

    what: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    payload: Mapping[str, Any]

    def text(self) -> str:
        """Write it as the attribute of a call; no floats are in there, for they would lose digits."""
        ports = {name: [[p.kind, p.rank] for p in getattr(self, name)] for name in ("inputs", "outputs")}
        return json.dumps({"what": self.what, **ports, "payload": self.payload}, sort_keys=True, separators=(",", ":"))


def parse_spec(text: str) -> CallSpec:
    """Read what ``Spec.text`` wrote. Raises UnsupportedModel where it is something else."""
    try:
        plain = json.loads(text)
        what, payload = plain["what"], plain["payload"]
        inputs, outputs = (tuple(_port(*port) for port in plain[name]) for name in ("inputs", "outputs"))
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise UnsupportedModel(f"a call of Python cannot be read: {type(error).__name__}: {error}.") from None
    if not isinstance(what, str) or not isinstance(payload, Mapping):
        raise UnsupportedModel("a call of Python cannot be read: it does not say what to do.")
    if any(port.slot == TEXT for port in inputs):
        raise UnsupportedModel("a call of Python is given strings, which do not all arrive as they are.")
    return CallSpec(what, inputs, outputs, payload)


def _port(kind: str, rank: int) -> Port:
    if kind not in CARRIERS or not isinstance(rank, int) or rank < 0:
        raise ValueError(f"{kind!r} of rank {rank!r} is no value")
    return Port(kind, rank)


def needs_shapes(ports: Sequence[Port]) -> bool:
    """Whether some inputs share a slot, so that shapes must travel."""
    slots = [port.slot for port in ports]
    return len(set(slots)) < len(slots)


def is_packed(ports: Sequence[Port], slot: str, *, results: bool) -> bool:
    """Whether the values of this slot are flattened into one."""
    count = sum(port.slot == slot for port in ports)
    if slot == META:
        return results or (needs_shapes(ports) and count > 0)
    return count > 1


def meta_offsets(outputs: Sequence[Port]) -> list[int]:
    """Return where in the int64 slot the facts on each result start: its start and end where it is packed, then its shape."""
    offsets, at = [], 0
    for port in outputs:
        offsets.append(at)
        at += port.rank + (2 if is_packed(outputs, port.slot, results=True) else 0)
    return offsets


def meta_length(outputs: Sequence[Port]) -> int:
    """Return how many numbers of the int64 slot are such facts."""
    return sum(port.rank + (2 if is_packed(outputs, port.slot, results=True) else 0) for port in outputs)
