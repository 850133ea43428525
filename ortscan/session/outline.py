"""The structure of a serialised model: its nodes and inputs, read without parsing the weights."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ortscan.cache.structure import fields_of

if TYPE_CHECKING:
    from mmap import mmap

__all__ = ["Node", "Outline", "outline_of"]

_GRAPH, _BYTES = 7, 2
_NODE, _INITIALIZER, _INPUT, _SPARSE_INITIALIZER = 1, 5, 11, 15
_NAME = 1
_READS, _WRITES, _OPERATOR, _DOMAIN = 1, 2, 4, 7
_STANDARD = (b"", b"ai.onnx")


@dataclass(frozen=True)
class Node:
    """A node of the main graph. ``operator`` is empty if the node is in another domain than ONNX's own."""

    operator: bytes
    inputs: Sequence[bytes]
    outputs: Sequence[bytes]


@dataclass(frozen=True)
class Outline:
    """A model without the initializers of its main graph.

    Attributes:
        text: All other bytes; the whole model if it cannot be read as one.
        messages: The nodes of the main graph, serialised.
        inputs: The names of the inputs of the main graph.
    """

    text: bytes
    messages: Sequence[bytes] = ()
    inputs: frozenset[bytes] = frozenset()

    def names(self, *words: bytes) -> bool:
        """Return True if any of ``words`` occurs anywhere outside the initializers."""
        return any(word in self.text for word in words)

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes of the main graph. Raises IndexError or KeyError if one cannot be read."""
        for message in self.messages:
            parts: dict[int, list[bytes]] = {}
            for number, kind, start, stop in fields_of(message, (0, len(message))):
                if kind == _BYTES:
                    parts.setdefault(number, []).append(message[start:stop])
            operator = parts.get(_OPERATOR, [b""])[-1] if parts.get(_DOMAIN, [b""])[-1] in _STANDARD else b""
            yield Node(operator, parts.get(_READS, []), parts.get(_WRITES, []))


def outline_of(content: "bytes | mmap") -> Outline:
    """Return the outline of ``content``, a ModelProto."""
    kept: list[bytes] = []
    messages: list[bytes] = []
    inputs: set[bytes] = set()
    done = 0
    try:
        for number, kind, begin, end in fields_of(content, (0, len(content))):
            for inner, form, start, stop in fields_of(content, (begin, end)) if (number, kind) == (_GRAPH, _BYTES) else ():
                if inner in (_INITIALIZER, _SPARSE_INITIALIZER):
                    kept.append(content[done:start])
                    done = stop
                elif (inner, form) == (_NODE, _BYTES):
                    messages.append(content[start:stop])
                elif (inner, form) == (_INPUT, _BYTES):
                    inputs.update(content[at:last] for part, _, at, last in fields_of(content, (start, stop)) if part == _NAME)
    except (IndexError, KeyError):
        return Outline(content[:])
    return Outline(b"".join([*kept, content[done:]]), messages, frozenset(inputs))
