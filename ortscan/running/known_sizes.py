"""What the values inside a model take, as far as their sizes follow from those of its inputs before it is run."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from ortscan.running.analysis import Analysis

__all__ = ["KnownSizes", "known_sizes"]

_POINTER = 8
_TENSOR = 320
"""What a tensor in a sequence takes beside its elements (onnxruntime 1.32, measured)."""


@dataclass(frozen=True)
class KnownSizes:
    """The largest value for each set of free dimensions: its bytes where these are 1, and its name."""

    largest: Mapping[tuple[str, ...], tuple[int, str]]

    def at(self, sizes: Mapping[str, int]) -> int:
        """Return the bytes of the largest value where the free dimensions have ``sizes``."""
        return max((size * math.prod(sizes.get(name, 1) for name in names) for names, (size, _) in self.largest.items()), default=0)

    def fixed(self) -> tuple[int, str]:
        """Return the bytes and name of the largest value whose size is always the same."""
        return self.largest.get((), (0, ""))


def known_sizes(analysis: Analysis) -> KnownSizes:
    """Read off the shapes that were inferred. A value inside a loop counts once."""
    found: dict[tuple[str, ...], tuple[int, str]] = {}
    for node in ir.traversal.RecursiveGraphIterator(analysis.model.graph):
        for value in node.outputs:
            dims = analysis.dims(value)
            if dims is None or None in dims or value.dtype is None:
                continue
            width = _POINTER if value.dtype == ir.DataType.STRING else max(1, value.dtype.bitwidth // 8)
            names = tuple(sorted(dim for dim in dims if isinstance(dim, str)))
            _note(found, names, math.prod(dim for dim in dims if isinstance(dim, int)) * width, value)
        if node.op_type == "SplitToSequence" and node.domain == "" and node.inputs[0] is not None:
            dims, axis = analysis.dims(node.inputs[0]), node.attributes.get_int("axis", 0)
            many = dims[axis] if dims is not None and -len(dims) <= axis < len(dims) else None
            if many is not None:
                _note(
                    found,
                    (many,) if isinstance(many, str) else (),
                    _TENSOR * (many if isinstance(many, int) else 1),
                    node.outputs[0],
                )
    return KnownSizes(found)


def _note(found: dict[tuple[str, ...], tuple[int, str]], names: tuple[str, ...], size: int, value: ir.Value) -> None:
    if size > found.get(names, (0, ""))[0]:
        found[names] = (size, value.name or "")
