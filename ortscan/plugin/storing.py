"""Store the plans of a model's loops in the metadata of the model.

The native library reads them there, so it needs no Python.
"""

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from ortscan.edge.border import wrap_errors
from ortscan.errors import OptionError
from ortscan.modelio.destination import Replacement
from ortscan.modelio.protos import locations_in
from ortscan.modelio.reading import PROTOBUF_LIMIT, format_of, read
from ortscan.plugin.callback import PlanRequest, record_plan_requests
from ortscan.plugin.register import add_provider
from rewrites.base.errors import ModelFileError, is_raised_by
from rewrites.base.plain_text import one_line

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["KEY", "store_plans"]

KEY = "ortscan.loop."
_METADATA = 14
"""The number of the field with the metadata of a model."""
_VARINT, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5
"""The wire types of fields in a protocol buffer."""


@wrap_errors
def store_plans(model: Path, output: Path) -> list[PlanRequest]:
    """Write a copy of a model file with the plans of its loops. Return all requests for plans.

    Plans that the file already contains are replaced. The rest of the file is copied byte by byte. If a loop has no plan,
    ``PlanRequest.answer`` is None for its requests.

    Args:
        model: the model file.
        output: the file to write, which may be ``model``.

    Raises:
        OptionError: ortscan's library is missing, onnxruntime is too old, or a file is not in protobuf format.
        ModelFileError: onnxruntime cannot load the model, ``output`` cannot be written, or the model has external data and
            ``output`` is in another folder.
    """
    proto = read(model)
    if format_of(model) != "protobuf" or format_of(output) != "protobuf":
        raise OptionError("plans can only be stored in models in protobuf format, with names such as .onnx or .pb.")
    if any(locations_in(proto)) and model.parent.resolve() != output.parent.resolve():
        raise ModelFileError(f"{model} has external data, so its copy with plans must be in the same folder.")
    with record_plan_requests() as requests:
        for options in _all_options():
            _load(model, options)
    bare = b"".join(_without_plans(memoryview(model.read_bytes())))
    answers = {_key(each.model): each.answer for each in requests if each.answer is not None}
    content = bare + b"".join(_entry(key, answer) for key, answer in sorted(answers.items()))
    if len(content) > PROTOBUF_LIMIT:
        raise ModelFileError(f"{model} would exceed the size limit of a model with its plans.")
    try:
        with Replacement() as files:
            files.open(output).write(content)
            files.commit()
    except OSError as error:
        raise ModelFileError(f"{output} cannot be written: {error.strerror or error}.") from error
    return list({each.title: each for each in requests}.values())


def _all_options() -> Iterator["ort.SessionOptions"]:
    """Yield SessionOptions without and with onnxruntime's graph optimisation.

    onnxruntime may change a loop before it asks the provider, so the optimised form of a loop needs a plan of its own.
    """
    import onnxruntime as ort

    for level in (ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL):
        options = ort.SessionOptions()
        options.graph_optimization_level = level
        options.log_severity_level = 4
        yield add_provider(options, {"ask": "1"})


def _load(model: Path, options: "ort.SessionOptions") -> None:
    import onnxruntime as ort

    try:
        ort.InferenceSession(str(model), options)
    except Exception as error:
        if not is_raised_by(error, "onnxruntime"):
            raise
        raise ModelFileError(f"onnxruntime cannot load {model}: {one_line(error)}") from error


def _key(model: bytes) -> str:
    return KEY + hashlib.sha256(model).hexdigest()


def _entry(key: str, answer: bytes) -> bytes:
    """Return a serialised metadata entry of a model, with the key ``key`` and the value ``answer``."""
    entry = onnx.StringStringEntryProto(key=key, value=base64.b64encode(answer).decode()).SerializeToString()
    return b"".join([_varint(_METADATA << 3 | _LENGTH), _varint(len(entry)), entry])


def _without_plans(data: memoryview) -> Iterator[Any]:
    """Yield the serialised fields of the model ``data``, except for metadata entries that contain plans."""
    at = 0
    while at < len(data):
        start = at
        tag, at = _read_varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            _, at = _read_varint(data, at)
        elif kind in (_EIGHT, _FOUR):
            at += 8 if kind == _EIGHT else 4
        elif kind == _LENGTH:
            count, begin = _read_varint(data, at)
            at = begin + count
            if tag >> 3 == _METADATA and onnx.StringStringEntryProto.FromString(bytes(data[begin:at])).key.startswith(KEY):
                continue
        yield data[start:at]


def _varint(number: int) -> bytes:
    digits = bytearray()
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return number, at
