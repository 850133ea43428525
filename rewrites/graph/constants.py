"""Constants that rewrites add: initializers of the main graph, one for each distinct tensor."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import onnx_ir as ir

from rewrites.graph.names import Names

__all__ = ["ConstantPool"]


class ConstantPool:
    """Hands out initializers; those that end up without a use are taken away again by ``drop_unused``.

    What is asked for while a rule only looks becomes an initializer by ``put``, where the rule's patch is made.
    """

    def __init__(self, graph: ir.Graph, names: Names) -> None:
        self._graph = graph
        self._names = names
        self._known: dict[tuple[str, tuple[int, ...], bytes], ir.Value] = {}
        self._wanted: list[ir.Value] | None = None

    def value(self, array: np.ndarray, hint: str = "const") -> ir.Value:
        """Return the initializer that holds ``array``."""
        tensor = _tensor(array)
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
        """Leave the model as it is in the meantime; give the list of the constants that were asked for."""
        before, wanted = self._wanted, list[ir.Value]()
        self._wanted = wanted
        try:
            yield wanted
        finally:
            self._wanted = before

    def put(self, values: Iterable[ir.Value]) -> None:
        """Make ``values``, which were asked for, initializers, where they are none yet."""
        for value in values:
            if not value.is_initializer():
                self._graph.register_initializer(value)

    def drop_unused(self) -> None:
        """Remove the constants nobody uses."""
        for key, value in list(self._known.items()):
            if not value.uses() and not value.is_graph_output():
                if value.is_initializer():
                    del self._graph.initializers[value.name or ""]
                del self._known[key]


def _tensor(array: np.ndarray) -> ir.TensorProtocol:
    if array.dtype.kind not in "OUST":
        return ir.tensor(array)
    items = [item.encode() if isinstance(item, str) else bytes(item) for item in array.reshape(-1).tolist()]
    return ir.StringTensor(items, shape=ir.Shape(array.shape))
