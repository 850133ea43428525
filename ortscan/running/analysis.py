"""Reading a model to learn what inputs it can take: the graph with named dimensions and inferred shapes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx
import onnx_ir as ir

from ortscan.modelio import inline_functions
from ortscan.modelio.protos import hide_map_types
from ortscan.modelio.refusals import called_nodes
from ortscan.modelio.slots import own_ir
from ortscan.ort.opsets import newest_opset
from ortscan.running.specs import Spec
from rewrites.analysis.shapes.inference import infer_model
from rewrites.graph.walk import inner_graphs

__all__ = ["Analysis", "analyse"]

_MOST_INLINED = 20_000


@dataclass(frozen=True)
class Analysis:
    """``model`` is to be read only; ``names`` gives the dimension a symbol of the model stands for."""

    model: ir.Model
    names: Mapping[str, str]

    def dim(self, value: ir.Value | None, axis: int) -> int | str | None:
        """The size of one axis: a number, the name of a free dimension of the inputs, or None where it is neither."""
        if value is None or value.shape is None or not -len(value.shape) <= axis < len(value.shape):
            return None
        dim = value.shape[axis]
        return dim if isinstance(dim, int) else self.names.get(dim.value or "")

    def dims(self, value: ir.Value | None) -> list[int | str | None] | None:
        """All axes, or None where the rank is not known."""
        if value is None or value.shape is None:
            return None
        return [self.dim(value, axis) for axis in range(len(value.shape))]


def analyse(proto: onnx.ModelProto, specs: Sequence[Spec]) -> Analysis:
    """Infer shapes with every free dimension of the inputs followed by name; model functions are inlined where that is soon done.

    The proto is not changed, and weights are not read.
    """
    model = own_ir(hide_map_types(proto, "the model"))
    if "" not in model.opset_imports:
        model.opset_imports[""] = model.opset_imports.get("ai.onnx") or newest_opset()
    if called_nodes(proto) <= _MOST_INLINED:
        inline_functions(model, lambda _: True)
    inputs = {value.name: value for value in model.graph.inputs}
    symbols: dict[str, str] = {}
    for spec in specs:
        if spec.kind == "tensor" and not spec.optional and spec.dims is not None:
            inputs[spec.name].shape = ir.Shape([_symbol(dim, symbols) for dim in spec.dims])
    for graph in [model.graph, *inner_graphs(model.graph)]:
        for value in _inner_values(graph):
            if value.shape is not None:
                value.shape = ir.Shape([_followed(dim, symbols) for dim in value.shape])
    infer_model(model)
    return Analysis(model, {symbol: name for name, symbol in symbols.items()})


def _inner_values(graph: ir.Graph) -> Iterator[ir.Value]:
    """What is neither an input of the model nor an initializer: bodies often declare symbols of their own."""
    for node in graph:
        yield from node.outputs
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                yield from attribute.as_graph().inputs


def _followed(dim: int | ir.SymbolicDim, symbols: Mapping[str, str]) -> int | str | None:
    """An inner dimension by the name its symbol has in ``symbols``; unknown to be inferred where it has none."""
    return dim if isinstance(dim, int) else symbols.get(dim.value or "")


def _symbol(dim: int | str, symbols: dict[str, str]) -> int | str:
    """A plain identifier no engine takes for arithmetic."""
    if isinstance(dim, int):
        return dim
    return symbols.setdefault(dim, f"free_dim_{len(symbols)}")
