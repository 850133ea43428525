"""Find the weights that a caller has put into SessionOptions, for example with ``add_initializer``.

onnxruntime uses such weights instead of those on disk or in the model. SessionOptions cannot list their weights. This module finds
the weights with small models:

* ``hold_weights`` tries to open the model ``_PROBE``. This always fails, because the only weight of ``_PROBE`` has a forbidden
  path. But if the SessionOptions hold weights, onnxruntime fails earlier, with the message that their weights do not fit the model.
* ``check_weights`` runs a model that returns its weights. They are empty, but have the names of the real weights. If the
  SessionOptions hold a weight with such a name, onnxruntime uses its value, and the model returns this value.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ortscan.session.outline import fields_of, varint_at
from ortscan.session.source import SessionSource
from rewrites.base.errors import UnsupportedModel, is_raised_by

if TYPE_CHECKING:
    import onnx
    import onnxruntime as ort

__all__ = ["check_weights", "hold_weights"]

_MISFITS = ("InjectExternalInitializersFromFilesInMemory", "ReplaceInitializedTensor")
_PROBE = (
    b'\x08\x08:\\\n\x1e\n\x0fortscan: weight\x12\x01y"\x08Identity\x12\x01g*&\x08\x01\x10\x02'
    b"B\x0fortscan: weightj\r\n\x08location\x12\x01/p\x01b\x0f\n\x01y\x12\n\n\x08\x08\x02\x12\x04\n\x02\x08\x01B\x04\n\x00\x10\x12"
)
"""A model with an Identity of an external initializer."""

_FATAL = 4
_OUTPUT = "ortscan: weights"
_LEAVES_A_TRACE = {"enable_profiling": False, "optimized_model_filepath": ""}
_FLOAT = 1
_IN_SEQUENCES = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13})
_BYTES = 2
_GRAPH, _INITIALIZER, _TYPE, _NAME = 7, 5, 2, 8


def hold_weights(options: "ort.SessionOptions") -> bool:
    """Return True if ``options`` hold weights in memory: single weights, or files of external data.

    No session is created, and no file is written.
    """
    try:
        with _writing_no_files(options):
            _session(options, _PROBE)
    except Exception as error:
        if not is_raised_by(error, "onnxruntime", "ortscan"):
            raise
        return any(words in str(error) for words in _MISFITS)
    return False


def check_weights(options: "ort.SessionOptions", source: SessionSource) -> None:
    """Raise UnsupportedModel if a weight has one value in ``options`` and another value in the model.

    ortscan may have computed with the value in the model.
    """
    replaced = dict[str, Any]()
    for kind, names in _names_by_type(source).items():
        held = _held_values(options, names, kind if kind in _IN_SEQUENCES else _FLOAT)
        if held is None and source.is_in_memory:
            return
        replaced |= dict.fromkeys(names) if held is None else held
    if not replaced:
        return
    from ortscan.modelio.reading import parse

    for tensor in parse(source.content, source.path or "the given bytes").graph.initializer:
        if tensor.name in replaced and not _is_equal(tensor, replaced[tensor.name], source):
            raise UnsupportedModel(
                f"the SessionOptions hold another value for the weight {tensor.name!r}, which ortscan computes with."
            )


def _names_by_type(source: SessionSource) -> dict[int, list[str]]:
    """Return the names of the weights, grouped by element type. The values of the weights are not read."""
    names: dict[int, list[str]] = {}
    with source.mapped() as content:
        for number, _, start, stop in fields_of(content, (0, len(content))):
            for inner, _, first, last in fields_of(content, (start, stop)) if number == _GRAPH else ():
                if inner == _INITIALIZER:
                    parts = {field: (at, end) for field, _, at, end in fields_of(content, (first, last))}
                    kind = varint_at(content, parts[_TYPE][0])[0] if _TYPE in parts else 0
                    names.setdefault(kind, []).append(content[slice(*parts.get(_NAME, (0, 0)))].decode())
    return names


def _held_values(options: "ort.SessionOptions", names: Sequence[str], kind: int) -> dict[str, Any] | None:
    """Return the values of those weights among ``names`` that ``options`` hold.

    ``kind`` is the element type of the weights. To read the values, this function runs a model that returns the weights. Return
    None if onnxruntime rejects this model.
    """
    from onnxruntime.capi import _pybind_state as native

    quiet = native.RunOptions()
    quiet.log_severity_level = _FATAL
    try:
        with _writing_no_files(options):
            (values,) = _session(options, _model_of_weights(names, kind)).run([_OUTPUT], {}, quiet)
    except Exception as error:
        if not is_raised_by(error, "onnxruntime", "ortscan"):
            raise
        return None
    return {name: array for name, array in zip(names, values, strict=True) if np.shape(array) != (0,)}


@contextmanager
def _writing_no_files(options: "ort.SessionOptions") -> Iterator[None]:
    """While the ``with`` block runs, disable the options that make sessions write files."""
    before = {name: getattr(options, name) for name, value in _LEAVES_A_TRACE.items() if getattr(options, name) != value}
    try:
        for name in before:
            setattr(options, name, _LEAVES_A_TRACE[name])
        yield
    finally:
        for name, value in before.items():
            setattr(options, name, value)


def _session(options: "ort.SessionOptions", model: bytes) -> Any:
    from onnxruntime.capi import _pybind_state as native

    session = native.InferenceSession(options, model, False, False)
    session.initialize_session(["CPUExecutionProvider"], [{}], set())
    return session


def _is_equal(tensor: "onnx.TensorProto", value: Any, source: SessionSource) -> bool:
    import onnx

    if value is None:
        return False
    try:
        own = onnx.numpy_helper.to_array(tensor, base_dir=source.data_folders[0])
    except Exception:  # onnx may raise any error if it cannot read the tensor
        return False
    return bool(own.dtype == value.dtype and own.shape == value.shape and own.tobytes() == value.tobytes())


def _model_of_weights(names: Sequence[str], kind: int) -> bytes:
    """Return a serialised model that has empty weights called ``names``, and returns them in a sequence.

    The output is a sequence because onnxruntime does not fold sequences. ``kind`` is the element type of the weights.
    """
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
    digits = bytearray()
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])
