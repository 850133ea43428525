"""Creates new nodes for a patch, with fresh names, inferred types and shapes, and shared constants.

The nodes are in no graph until they are inserted.

Works around ORT-LAYERNORM-EMPTY-NAME.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx_ir as ir

from rewrites.graph.names import Names
from rewrites.graph.node_inference import infer_node
from rewrites.graph.walk import all_nodes, node_graphs

__all__ = ["Builder", "ConstantPool", "tensor_of"]


class Builder:
    """Creates nodes and collects them in order, until they are inserted into a graph.

    The collected nodes count as users of their inputs. So a rule that builds nodes, but then does not apply, must ``discard`` them.
    """

    def __init__(self, names: Names, constants: "ConstantPool", opsets: dict[str, int], ir_version: int) -> None:
        self.names = names
        self.opsets = opsets
        self.opset = opsets.get("", 1)
        self.nodes: list[ir.Node] = []
        self._constants = constants
        self._ir_version = ir_version

    def op(
        self,
        op_type: str,
        *inputs: ir.Value | None,
        domain: str = "",
        hint: str | None = None,
        version: int | None = None,
        **attributes: Any,
    ) -> ir.Value:
        """Create a node with one output and return the output. Attributes that are None are omitted.

        ``hint`` and ``version``: see ``node``.
        """
        return self.ops(op_type, inputs, 1, domain=domain, hint=hint, version=version, **attributes)[0]

    def ops(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        outputs: int,
        *,
        domain: str = "",
        hint: str | None = None,
        version: int | None = None,
        **attributes: Any,
    ) -> tuple[ir.Value, ...]:
        """Create a node with ``outputs`` outputs and return them. Attributes that are None are omitted.

        ``hint`` and ``version``: see ``node``.
        """
        present = {key: value for key, value in attributes.items() if value is not None}
        return self.node(op_type, inputs, outputs, ir.convenience.convert_attributes(present), domain, hint, version)

    def like(self, node: ir.Node, inputs: Sequence[ir.Value | None], **changed: Any) -> tuple[ir.Value, ...]:
        """Create a copy of ``node`` that reads ``inputs``, and return its outputs.

        ``changed``: attributes that differ from those of ``node``. The value None removes an attribute.
        """
        keep = [attribute for name, attribute in node.attributes.items() if name not in changed]
        present = {key: value for key, value in changed.items() if value is not None}
        attributes = [*keep, *ir.convenience.convert_attributes(present)]
        hint = node.outputs[0].name if node.outputs else None
        return self.node(node.op_type, inputs, len(node.outputs), attributes, node.domain, hint, node.version)

    def node(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        outputs: int,
        attributes: Sequence[ir.Attr],
        domain: str = "",
        hint: str | None = None,
        version: int | None = None,
    ) -> tuple[ir.Value, ...]:
        """Create a node with ``outputs`` outputs and return them.

        ``op``, ``ops`` and ``like`` call this function.

        ``hint``: the name on which the names of the node and its outputs are based. ``version``: the opset version of the node.
        Absent inputs at the end of ``inputs`` are dropped, because onnxruntime crashes on some nodes that have them.
        """
        operands = list(inputs)
        while operands and operands[-1] is None:
            operands.pop()
        values = [ir.Value(name=self.names.fresh(hint or op_type.lower())) for _ in range(outputs)]
        name = self.names.fresh(f"{hint or ''}/{op_type}" if hint else f"node_{op_type}")
        node = ir.Node(domain, op_type, operands, attributes, outputs=values, name=name, version=version)
        infer_node(node, self.opsets, self._ir_version)
        self.nodes.append(node)
        return tuple(node.outputs)

    def const(self, array: np.ndarray | Sequence[int] | int, dtype: Any = np.int64) -> ir.Value:
        """Return an initializer of the main graph that holds ``array``.

        Equal constants share one initializer. ``dtype``: the type if ``array`` is no numpy array.
        """
        return self._constants.value(array if isinstance(array, np.ndarray) else np.asarray(array, dtype=dtype))

    def insert_before(self, anchor: ir.Node) -> None:
        """Insert the collected nodes before ``anchor``, in order."""
        assert anchor.graph is not None
        anchor.graph.insert_before(anchor, self.nodes)
        self.nodes = []

    def insert_after(self, anchor: ir.Node) -> None:
        """Insert the collected nodes after ``anchor``, in order."""
        assert anchor.graph is not None
        anchor.graph.insert_after(anchor, self.nodes)
        self.nodes = []

    def prepend_to(self, graph: ir.Graph) -> None:
        """Insert the collected nodes at the start of ``graph``, in order."""
        if len(graph):
            self.insert_before(graph[0])
        else:
            self.append_to(graph)

    def append_to(self, graph: ir.Graph) -> None:
        """Append the collected nodes to ``graph``, in order."""
        graph.extend(self.nodes)
        self.nodes = []

    def discard(self, since: int = 0) -> None:
        """Remove the collected nodes from index ``since`` on, and detach them from their inputs."""
        for node in reversed(self.nodes[since:]):
            for graph in node_graphs(node):
                for inner in all_nodes(graph):
                    inner.resize_inputs(0)
            node.resize_inputs(0)
        del self.nodes[since:]

    def another(self) -> "Builder":
        """Return a new, empty Builder for the same model. It can collect the nodes of a body, for example."""
        return Builder(self.names, self._constants, self.opsets, self._ir_version)


class ConstantPool:
    """The initializers that hold new constants. Equal constants share one initializer.

    While a rule decides whether it applies, ``looking`` collects the new constants in a list. They are not in the model yet. If the
    rule applies, ``put`` adds them to the model.
    """

    def __init__(self, graph: ir.Graph, names: Names) -> None:
        self._graph = graph
        self._names = names
        self._known: dict[tuple[str, tuple[int, ...], bytes], ir.Value] = {}
        self._wanted: list[ir.Value] | None = None

    def value(self, array: np.ndarray, hint: str = "const") -> ir.Value:
        """Return an initializer with the elements of ``array``."""
        tensor = tensor_of(array)
        content = repr(array.tolist()).encode() if tensor.dtype == ir.DataType.STRING else array.tobytes()
        key = (str(tensor.dtype), array.shape, content)
        value = self._known.get(key)
        if value is None:
            name = self._names.fresh(hint)
            tensor.name = name
            value = ir.Value(name=name, shape=ir.Shape(array.shape), type=ir.TensorType(tensor.dtype), const_value=tensor)
            self._known[key] = value
        if self._wanted is None:
            self.put([value])
        else:
            self._wanted.append(value)
        return value

    @contextmanager
    def looking(self) -> Iterator[list[ir.Value]]:
        """While the context is active, add new constants to the yielded list instead of to the model."""
        before, wanted = self._wanted, list[ir.Value]()
        self._wanted = wanted
        try:
            yield wanted
        finally:
            self._wanted = before

    def put(self, values: Iterable[ir.Value]) -> None:
        """Add ``values`` to the main graph as initializers. Skip values that are initializers already."""
        for value in values:
            if not value.is_initializer():
                self._graph.register_initializer(value)

    def drop_unused(self) -> None:
        """Remove the constants that no node reads and no graph returns."""
        for key, value in list(self._known.items()):
            if not value.uses() and not value.is_graph_output():
                if value.is_initializer():
                    del self._graph.initializers[value.name or ""]
                del self._known[key]


def tensor_of(array: np.ndarray, name: str | None = None) -> ir.TensorProtocol:
    """Return a tensor that holds ``array``, which may hold strings."""
    if array.dtype.kind not in "OUST":
        return ir.tensor(array, name=name)
    items = [item.encode() if isinstance(item, str) else bytes(item) for item in array.reshape(-1).tolist()]
    return ir.StringTensor(items, shape=ir.Shape(array.shape), name=name)
