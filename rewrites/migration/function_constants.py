"""Constants that a conversion adds to a model-local function: Constant nodes at its head, since a function has no initializers."""

import numpy as np
import onnx_ir as ir

from rewrites.graph.constants import ConstantPool
from rewrites.graph.names import Names

__all__ = ["FunctionConstants"]


class FunctionConstants(ConstantPool):
    """Hands out the results of Constant nodes of ``function``, one for each distinct tensor."""

    def __init__(self, function: ir.Function, names: Names) -> None:
        super().__init__(function.graph, names)
        self._function = function
        self._fresh = names
        self._nodes: dict[tuple[str, tuple[int, ...], bytes], ir.Node] = {}

    def value(self, array: np.ndarray, hint: str = "const") -> ir.Value:
        """Return a value that holds ``array`` everywhere in the function."""
        key = (str(array.dtype), array.shape, array.tobytes())
        node = self._nodes.get(key)
        if node is None:
            node = ir.node("Constant", [], attributes={"value": ir.tensor(array)}, name=self._fresh.fresh("node_Constant"))
            result = node.outputs[0]
            result.name = self._fresh.fresh(hint)
            result.type, result.shape = ir.TensorType(ir.tensor(array).dtype), ir.Shape(array.shape)
            self._function.insert_before(self._function[0], node)
            self._nodes[key] = node
        return node.outputs[0]

    def drop_unused(self) -> None:
        """Remove the constants nobody uses."""
        for key, node in list(self._nodes.items()):
            if not node.outputs[0].uses():
                self._function.remove(node)
                del self._nodes[key]
