"""Whether SessionOptions replace weights of a model that was optimised (``add_initializer``): it was computed with the model's own.

SessionOptions cannot be asked. But a session of a model that has nothing but empty weights of those names gives what they hold.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ortscan.cache.structure import fields_of, number_at
from ortscan.session.source import Source
from rewrites.base.errors import UnsupportedModel
from rewrites.base.raised_by import is_raised_by

if TYPE_CHECKING:
    import onnx
    import onnxruntime as ort

__all__ = ["check_weights"]

_FATAL = 4
_OUTPUT = "ortscan: weights"
_LEAVES_A_TRACE = {"enable_profiling": False, "optimized_model_filepath": ""}
_FLOAT = 1
_IN_SEQUENCES = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13})
_BYTES = 2
_GRAPH, _INITIALIZER, _TYPE, _NAME = 7, 5, 2, 8


def check_weights(options: "ort.SessionOptions", source: Source) -> None:
    """Raise UnsupportedModel where ``options`` hold another value for one of the weights of ``source``."""
    replaced = dict[str, Any]()
    for kind, names in _names_by_type(source).items():
        held = _held(options, names, kind if kind in _IN_SEQUENCES else _FLOAT)
        if held is None and source.is_in_memory:
            return
        replaced |= dict.fromkeys(names) if held is None else held
    if not replaced:
        return
    from ortscan.modelio.reading import parse

    for tensor in parse(source.content, source.path or "the given bytes").graph.initializer:
        if tensor.name in replaced and not _is_equal(tensor, replaced[tensor.name], source):
            raise UnsupportedModel(f"the SessionOptions hold another value for the weight {tensor.name!r}, which is computed with.")


def _names_by_type(source: Source) -> dict[int, list[str]]:
    """Return the names of the weights, without reading more than what is around their values."""
    found: dict[int, list[str]] = {}
    with source.mapped() as content:
        for number, _, start, stop in fields_of(content, (0, len(content))):
            for inner, _, first, last in fields_of(content, (start, stop)) if number == _GRAPH else ():
                if inner == _INITIALIZER:
                    parts = {each: (at, end) for each, _, at, end in fields_of(content, (first, last))}
                    kind = number_at(content, parts[_TYPE][0])[0] if _TYPE in parts else 0
                    found.setdefault(kind, []).append(content[slice(*parts.get(_NAME, (0, 0)))].decode())
    return found


def _held(options: "ort.SessionOptions", names: Sequence[str], kind: int) -> dict[str, Any] | None:
    """Return those of the weights that ``options`` replace, with their values; None where that cannot be told for their types."""
    from onnxruntime.capi import _pybind_state as native

    kept = {name: value for name, value in _LEAVES_A_TRACE.items() if getattr(options, name) != value}
    before = {name: getattr(options, name) for name in kept}
    quiet = native.RunOptions()
    quiet.log_severity_level = _FATAL
    try:
        for name, value in kept.items():
            setattr(options, name, value)
        session = native.InferenceSession(options, _probe(names, kind), False, False)
        session.initialize_session(["CPUExecutionProvider"], [{}], set())
        (found,) = session.run([_OUTPUT], {}, quiet)
    except Exception as error:
        if not is_raised_by(error, "onnxruntime", "ortscan"):
            raise
        return None
    finally:
        for name, value in before.items():
            setattr(options, name, value)
    return {name: array for name, array in zip(names, found, strict=True) if np.shape(array) != (0,)}


def _is_equal(tensor: "onnx.TensorProto", value: Any, source: Source) -> bool:
    import onnx

    if value is None:
        return False
    try:
        own = onnx.numpy_helper.to_array(tensor, base_dir=source.data_folders[0])
    except Exception:  # whatever keeps onnx from reading it
        return False
    return bool(own.dtype == value.dtype and own.shape == value.shape and own.tobytes() == value.tobytes())


def _probe(names: Sequence[str], kind: int) -> bytes:
    """Write a ModelProto that puts empty weights into a sequence, which onnxruntime does not do beforehand."""
    node = [*((1, name) for name in names), (2, _OUTPUT), (4, "SequenceConstruct")]
    weights = [(5, _message([(1, 0), (2, kind), (8, name)])) for name in names]
    element = _message([(4, _message([(1, _message([(1, _message([(1, kind)]))]))]))])
    output = _message([(1, _OUTPUT), (2, element)])
    graph = _message([(1, _message(node)), (2, "g"), *weights, (12, output)])
    return _message([(1, 8), (7, graph), (8, _message([(2, 13)]))])


def _message(fields: Iterable[tuple[int, int | str | bytes]]) -> bytes:
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts.append(_varint(number << 3) + _varint(value))
            continue
        content = value.encode() if isinstance(value, str) else value
        parts.append(_varint(number << 3 | _BYTES) + _varint(len(content)) + content)
    return b"".join(parts)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)
