"""Read the structure of a serialised model, without its weights and without importing onnx.

outline_of(content)                   returns nodes, inputs, and the locations of external data
may_be_changed(outline, options)      returns False if ``optimize`` certainly leaves the model unchanged
"""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mmap import mmap

from ortscan.verb_options import OPTIMIZE_OPTIONS

__all__ = ["LEAST_STEPS", "NOT_IN_TREES", "Node", "Outline", "fields_of", "may_be_changed", "varint_at", "outline_of"]

LEAST_STEPS, _LEAST_LEVELS = 4, 3
NOT_IN_TREES = frozenset({b"Attention", b"Conv", b"Einsum", b"Gemm", b"LayerNormalization", b"MatMul", b"Shape", b"Softmax"})
"""Copies of constants of ``rewrites.loop_form``, whose import takes half a second."""

_VARINT, _BYTES = 0, 2
_SIZES = {1: 8, 5: 4}
_LAST_SHIFT = 63
_GRAPH = 7
_NODE, _INITIALIZER, _INPUT, _SPARSE_INITIALIZER = 1, 5, 11, 15
_NAME = 1
_READS, _WRITES, _OPERATOR, _DOMAIN = 1, 2, 4, 7
_STANDARD = (b"", b"ai.onnx")
_KEY, _VALUE = 1, 2
_LOCATION = b"location"
_LARGE = 64 << 10
_WAY_TO_EXTERNAL_DATA = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
    "tensor": {13: "entry"},
    "entry": {},
}
"""The messages that contain tensors, each with the fields that lead to tensors."""

_LOOPS = (b"Scan", b"Loop", b"RNN", b"GRU", b"LSTM")
_RUNS_IFS = "cpu"
_ONLY_FOR_LOOPS = frozenset(name for name, option in OPTIMIZE_OPTIONS.items() if option.only_for_loops)


@dataclass(frozen=True)
class Node:
    """A node of the main graph.

    Attributes:
        operator: the operator; empty if it is not one of ONNX's own operators.
        inputs: the names of the inputs.
        outputs: the names of the outputs.
    """

    operator: bytes
    inputs: Sequence[bytes]
    outputs: Sequence[bytes]


@dataclass(frozen=True)
class Outline:
    """The structure of a model, without the initializers of its main graph.

    Attributes:
        text: the serialised model without these initializers, or the whole model if it cannot be parsed.
        messages: the serialised nodes of the main graph.
        inputs: the names of the inputs of the main graph.
        locations: the locations of all external data as the model names them, without repetitions.
    """

    text: bytes
    messages: Sequence[bytes] = ()
    inputs: frozenset[bytes] = frozenset()
    locations: Sequence[str] = ()

    def names(self, *words: bytes) -> bool:
        """Return True if one of ``words`` occurs in the serialised model outside the initializers."""
        return any(word in self.text for word in words)

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes of the main graph. Raise IndexError or KeyError if a node cannot be parsed."""
        for message in self.messages:
            parts: dict[int, list[bytes]] = {}
            for number, kind, start, stop in fields_of(message, (0, len(message))):
                if kind == _BYTES:
                    parts.setdefault(number, []).append(message[start:stop])
            operator = parts.get(_OPERATOR, [b""])[-1] if parts.get(_DOMAIN, [b""])[-1] in _STANDARD else b""
            yield Node(operator, parts.get(_READS, []), parts.get(_WRITES, []))


def outline_of(content: "bytes | mmap") -> Outline:
    """Return the structure of the serialised ModelProto ``content``."""
    kept: list[bytes] = []
    messages: list[bytes] = []
    inputs: set[bytes] = set()
    is_external = False
    done = 0
    try:
        for number, kind, begin, end in fields_of(content, (0, len(content))):
            for inner, form, start, stop in fields_of(content, (begin, end)) if (number, kind) == (_GRAPH, _BYTES) else ():
                if inner in (_INITIALIZER, _SPARSE_INITIALIZER):
                    kept.append(content[done:start])
                    done = stop
                    is_external = is_external or (stop - start < _LARGE and _LOCATION in content[start:stop])
                elif (inner, form) == (_NODE, _BYTES):
                    messages.append(content[start:stop])
                elif (inner, form) == (_INPUT, _BYTES):
                    inputs.update(content[at:last] for part, _, at, last in fields_of(content, (start, stop)) if part == _NAME)
        text = b"".join([*kept, content[done:]])
    except (IndexError, KeyError):
        return Outline(content[:])
    locations: Sequence[str] = ()
    if is_external or _LOCATION in text:
        with suppress(IndexError, KeyError, UnicodeDecodeError):
            locations = sorted(set(_external_locations(content)))
    return Outline(text, messages, frozenset(inputs), locations)


def _external_locations(content: "bytes | mmap") -> Iterator[str]:
    """Yield the locations of external data of all tensors, including those in nested graphs and functions.

    Raise the errors of ``fields_of``.
    """
    waiting = [("model", 0, len(content))]
    while waiting:
        kind, begin, end = waiting.pop()
        strings: dict[int, bytes] = {}
        for number, form, start, stop in fields_of(content, (begin, end)):
            if form == _BYTES and number in _WAY_TO_EXTERNAL_DATA[kind]:
                waiting.append((_WAY_TO_EXTERNAL_DATA[kind][number], start, stop))
            elif form == _BYTES and kind == "entry":
                strings[number] = content[start:stop]
        if strings.get(_KEY) == _LOCATION:
            yield strings.get(_VALUE, b"").decode()


def fields_of(content: "bytes | mmap", within: tuple[int, int]) -> Iterator[tuple[int, int, int, int]]:
    """Yield (number, wire type, start of value, end of value) for each field of a protobuf message.

    Args:
        content: the bytes that contain the message.
        within: the start and the end of the message in ``content``.

    Raises:
        IndexError, KeyError: the message is invalid.
    """
    at, end = within
    while at < end:
        tag, at = varint_at(content, at)
        kind, start = tag & 7, at
        if kind == _VARINT:
            _, at = varint_at(content, at)
        elif kind in _SIZES:
            at += _SIZES[kind]
        elif kind == _BYTES:
            size, start = varint_at(content, at)
            at = start + size
        else:
            raise KeyError(kind)
        if at > end:
            raise IndexError(at)
        yield tag >> 3, kind, start, at


def varint_at(content: "bytes | mmap", at: int) -> tuple[int, int]:
    """Return the variable-length integer that begins at the position ``at``, and the position after it.

    Raise KeyError if the integer has more than 64 bits.
    """
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        if shift > _LAST_SHIFT:
            raise KeyError(at)
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def may_be_changed(outline: Outline, options: Mapping[str, Any]) -> bool:
    """Return False if ``optimize`` certainly leaves the model unchanged, otherwise True.

    ``optimize`` changes models with loops, recurrent nodes or unrolled steps, and models with an If for a target without If. With
    some options, it may change any model.
    """
    if not options.keys() <= _ONLY_FOR_LOOPS:
        return True
    if outline.names(*_LOOPS):
        return True
    try:
        nodes = list(outline.nodes())
    except (IndexError, KeyError):
        return False  # onnxruntime cannot read the model either
    has_if = options.get("target", _RUNS_IFS) != _RUNS_IFS and any(node.operator == b"If" for node in nodes)
    return has_if or _may_be_written_out(nodes, outline.inputs) or _may_have_prefix_trees(nodes)


def _may_be_written_out(nodes: Sequence[Node], inputs: Container[bytes]) -> bool:
    """Return True if the model may contain unrolled steps.

    This is the case if nodes read at least ``LEAST_STEPS`` rows of the same tensor by constant indices. The function
    ``chains.may_be_written_out`` does the same for an onnx_ir graph.

    Args:
        nodes: the nodes of the main graph.
        inputs: the names of the inputs of the main graph.
    """
    producers = {output: node for node in nodes for output in node.outputs}
    rows = Counter[bytes]()
    for node in nodes:
        source, *indices = node.inputs or [b""]
        producer = producers.get(source)
        if source not in inputs if producer is None else producer.operator in (b"Shape", b"Constant"):
            continue
        if node.operator == b"Split":
            rows[source] += len(node.outputs)
        elif node.operator in (b"Gather", b"Slice") and all(_is_constant(name, producers, inputs) for name in indices):
            rows[source] += 1
    return any(count >= LEAST_STEPS for count in rows.values())


def _may_have_prefix_trees(nodes: Sequence[Node]) -> bool:
    """Return True if the model may contain a prefix tree, like ``trees.may_have_prefix_trees``."""
    levels = dict[bytes, int]()
    for node in (node for node in nodes if node.operator and node.operator not in NOT_IN_TREES):
        level = max((levels.get(name, 0) for name in node.inputs), default=0) + (node.operator in (b"Pad", b"Slice", b"Split"))
        levels.update(dict.fromkeys(node.outputs, level))
    return max(levels.values(), default=0) >= _LEAST_LEVELS


def _is_constant(name: bytes, producers: Mapping[bytes, Node], inputs: Container[bytes]) -> bool:
    """Return True if the value ``name`` is constant.

    It is an initializer, the output of a Constant, or the output of a chain of Identity nodes that starts with one of these.
    """
    for _ in producers:
        node = producers.get(name)
        if node is None or node.operator != b"Identity" or not node.inputs:
            break
        name = node.inputs[0]
    producer = producers.get(name)
    return name not in inputs if producer is None else producer.operator == b"Constant"
