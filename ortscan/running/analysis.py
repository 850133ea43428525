"""Infer the shapes of the values of a model, and the sizes of these values in bytes.

A free dimension of an input, such as T in x [T, 4], becomes a symbol. The inferred shapes refer to these symbols.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import onnx
import onnx_ir as ir

from ortscan.modelio import inline_functions
from ortscan.modelio.protos import hide_map_types
from ortscan.modelio.refusals import count_called_nodes
from ortscan.modelio.slots import ir_with_own_tensors
from ortscan.ort.installed import newest_opset
from ortscan.running.specs import SessionSpec
from rewrites.analysis.shapes.inference import infer_model
from rewrites.base.errors import is_from_elsewhere
from rewrites.graph.walk import inner_graphs

__all__ = ["Analysis", "KnownSizes", "analyse", "if_readable", "known_sizes"]

_Result = TypeVar("_Result")

_MOST_INLINED = 20_000
_POINTER = 8
_TENSOR = 320
"""The bytes of a tensor in a sequence in addition to its elements (measured on onnxruntime 1.32)."""


@dataclass(frozen=True)
class Analysis:
    """A model with inferred shapes. Do not change the model.

    In the inferred shapes, generated symbols replace the names of the free dimensions. ``names`` maps each symbol to the name that
    it replaces.
    """

    model: ir.Model
    names: Mapping[str, str]

    def dim(self, value: ir.Value | None, axis: int) -> int | str | None:
        """Return the size of an axis of ``value``.

        The size is a number, the name of a free dimension of the inputs, or None if it is unknown.
        """
        if value is None or value.shape is None or not -len(value.shape) <= axis < len(value.shape):
            return None
        dim = value.shape[axis]
        return dim if isinstance(dim, int) else self.names.get(dim.value or "")

    def dims(self, value: ir.Value | None) -> list[int | str | None] | None:
        """Return the sizes of all axes of ``value``, or None if its rank is unknown."""
        if value is None or value.shape is None:
            return None
        return [self.dim(value, axis) for axis in range(len(value.shape))]


def analyse(proto: onnx.ModelProto, specs: Sequence[SessionSpec]) -> Analysis:
    """Infer the shapes of the values of a model, and return them as an `Analysis`.

    The Analysis contains a copy of the model. In this copy, functions are inlined unless the model would become very large. Weights
    are not read. ``specs`` declare the shapes of the inputs.
    """
    model = ir_with_own_tensors(hide_map_types(proto, "the model"))
    if "" not in model.opset_imports:
        model.opset_imports[""] = model.opset_imports.get("ai.onnx") or newest_opset()
    if count_called_nodes(proto) <= _MOST_INLINED:
        inline_functions(model, lambda _: True)
    inputs = {value.name: value for value in model.graph.inputs}
    symbols: dict[str, str] = {}
    for spec in specs:
        if spec.kind == "tensor" and not spec.optional and spec.dims is not None:
            dims = [dim if isinstance(dim, int) else symbols.setdefault(dim, f"free_dim_{len(symbols)}") for dim in spec.dims]
            inputs[spec.name].shape = ir.Shape(dims)
    for graph in [model.graph, *inner_graphs(model.graph)]:
        for value in _inner_values(graph):
            if value.shape is not None:
                value.shape = ir.Shape([dim if isinstance(dim, int) else symbols.get(dim.value or "") for dim in value.shape])
    infer_model(model)
    return Analysis(model, {symbol: name for name, symbol in symbols.items()})


def _inner_values(graph: ir.Graph) -> Iterator[ir.Value]:
    """Yield the outputs of the nodes of ``graph``, and the inputs of the bodies of these nodes.

    The declared shapes of such values often have names of dimensions that occur in no input of the model.
    """
    for node in graph:
        yield from node.outputs
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                yield from attribute.as_graph().inputs


@dataclass(frozen=True)
class KnownSizes:
    """The largest values of a model, to estimate how much memory a value needs at most.

    The keys of ``largest`` are sets of free dimensions. For each set, the entry has the largest value that has exactly these free
    dimensions. For example, if x [T, B, 4] and y [T, B, 8] of float32 have the free dimensions T and B, the entry is
    ``("B", "T"): (32, "y")``. The larger value is y, which has 32 bytes if T and B are 1.
    """

    largest: Mapping[tuple[str, ...], tuple[int, str]]

    def bytes_at(self, sizes: Mapping[str, int]) -> int:
        """Return the size in bytes of the largest value, if the free dimensions have ``sizes``."""
        return max((size * math.prod(sizes.get(name, 1) for name in names) for names, (size, _) in self.largest.items()), default=0)

    def largest_fixed(self) -> tuple[int, str]:
        """Return the size in bytes and the name of the largest of those values that have no free dimensions."""
        return self.largest.get((), (0, ""))


def known_sizes(analysis: Analysis) -> KnownSizes:
    """Return the sizes in bytes of the values whose shapes were inferred.

    The size of a value inside a loop is that of a single step.
    """
    largest: dict[tuple[str, ...], tuple[int, str]] = {}

    def note(names: tuple[str, ...], size: int, value: ir.Value) -> None:
        if size > largest.get(names, (0, ""))[0]:
            largest[names] = (size, value.name or "")

    for node in ir.traversal.RecursiveGraphIterator(analysis.model.graph):
        for value in node.outputs:
            dims = analysis.dims(value)
            if dims is None or None in dims or value.dtype is None:
                continue
            width = _POINTER if value.dtype == ir.DataType.STRING else max(1, value.dtype.bitwidth // 8)
            names = tuple(sorted(dim for dim in dims if isinstance(dim, str)))
            note(names, math.prod(dim for dim in dims if isinstance(dim, int)) * width, value)
        if node.op_type == "SplitToSequence" and node.domain == "" and node.inputs[0] is not None:
            dims, axis = analysis.dims(node.inputs[0]), node.attributes.get_int("axis", 0)
            count = dims[axis] if dims is not None and -len(dims) <= axis < len(dims) else None
            if isinstance(count, str):
                note((count,), _TENSOR, node.outputs[0])
            elif count is not None:
                note((), _TENSOR * count, node.outputs[0])
    return KnownSizes(largest)


def if_readable(read: Callable[[], _Result]) -> _Result | None:
    """Return the result of ``read``. Return None if it fails.

    ``read`` is a function that reads a model, and fails if ortscan or a library cannot read this model. Call ``if_readable`` only
    for results that are not essential.
    """
    try:
        return read()
    except Exception as error:
        if is_from_elsewhere(error):
            raise
        return None
