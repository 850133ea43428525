"""Slots to read and replace the tensors of an ``onnx_ir.Model``.

A slot is an initializer of a graph, or a tensor in an attribute of a node.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import onnx
import onnx_ir as ir

from ortscan.modelio.tensors import own_tensor
from rewrites.graph.walk import inner_graphs

__all__ = ["AttributeSlot", "InitializerSlot", "Slot", "graphs_in", "ir_with_own_tensors", "substituted", "tensor_slots"]


@dataclass(frozen=True)
class InitializerSlot:
    """The tensor of an initializer."""

    value: ir.Value

    def get(self) -> ir.TensorProtocol:
        """Return the tensor."""
        assert self.value.const_value is not None
        return self.value.const_value

    def put(self, tensor: ir.TensorProtocol) -> None:
        """Replace the tensor."""
        self.value.const_value = tensor


@dataclass(frozen=True)
class AttributeSlot:
    """A tensor in an attribute of a node. ``index`` is its position if the attribute is a list of tensors."""

    node: ir.Node
    attribute: str
    index: int | None

    def get(self) -> ir.TensorProtocol:
        """Return the tensor."""
        attribute = self.node.attributes[self.attribute]
        return attribute.as_tensor() if self.index is None else attribute.as_tensors()[self.index]

    def put(self, tensor: ir.TensorProtocol) -> None:
        """Replace the tensor."""
        old = self.node.attributes[self.attribute]
        if self.index is None:
            new = ir.AttrTensor(old.name, tensor, doc_string=old.doc_string)
        else:
            tensors = list(old.as_tensors())
            tensors[self.index] = tensor
            new = ir.AttrTensors(old.name, tensors, doc_string=old.doc_string)
        self.node.attributes[self.attribute] = new


Slot = InitializerSlot | AttributeSlot


def graphs_in(model: ir.Model) -> Iterator[ir.Graph]:
    """Yield the main graph, the functions' graphs, and all graphs nested in them."""
    for top in (model.graph, *(function.graph for function in model.functions.values())):
        yield top
        yield from inner_graphs(top)


def tensor_slots(model: ir.Model) -> Iterator[Slot]:
    """Yield all slots of the main graph, the functions, and the graphs nested in them."""
    for graph in graphs_in(model):
        yield from (InitializerSlot(value) for value in graph.initializers.values() if value.const_value is not None)
        for node in graph:
            yield from _of_node(node)


def _of_node(node: ir.Node) -> Iterator[AttributeSlot]:
    for name, attribute in list(node.attributes.items()):
        if attribute.is_ref():
            continue
        if attribute.type == ir.AttributeType.TENSOR:
            yield AttributeSlot(node, name, None)
        elif attribute.type == ir.AttributeType.TENSORS:
            yield from (AttributeSlot(node, name, index) for index in range(len(attribute.as_tensors())))


@contextmanager
def substituted(tensors: Sequence[tuple[Slot, ir.TensorProtocol]]) -> Iterator[None]:
    """Replace the tensors of some slots while the ``with`` block runs.

    ``tensors`` has pairs of a slot and the new tensor for it.
    """
    old = [(slot, slot.get()) for slot, _ in tensors]
    try:
        for slot, tensor in tensors:
            slot.put(tensor)
        yield
    finally:
        for slot, tensor in old:
            slot.put(tensor)


def ir_with_own_tensors(proto: onnx.ModelProto) -> ir.Model:
    """Return ``proto`` as an ``ir.Model`` with tensors of its own.

    Renaming such a tensor does not rename it in ``proto``.
    """
    model = ir.from_proto(proto)
    for slot in tensor_slots(model):
        tensor = slot.get()
        if not isinstance(tensor, ir.ExternalTensor):
            slot.put(own_tensor(tensor, is_ours=False))
    return model
