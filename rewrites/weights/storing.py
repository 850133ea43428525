"""Stores a float32 weight as int8, float16 or bfloat16.

    y = LSTM(x, W, R, B)    ->    w = Cast(W_int8); W = Mul(w, W_scale); y = LSTM(x, W, R, B)
    y = MatMul(x, W)        ->    W = Cast(W_float16); y = MatMul(x, W)

An int8 weight has a float scale for each channel: the largest magnitude of the channel becomes 127. The nodes that widen a weight
are in the main graph, so no loop repeats them. onnxruntime runs them once, when it loads the model, and then packs the result like
any constant. A DequantizeLinear would run each time. Before a MatMul, onnxruntime would also use it to round the activations.
"""

import numpy as np
import onnx_ir as ir

from rewrites.graph.names import Names
from rewrites.graph.replace import remove_nodes
from rewrites.weights.finding import Weight

__all__ = ["StoredWeight"]


def _rounded(weight: np.ndarray, dtype: ir.DataType, axis: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return ``weight`` in the element type ``dtype``, and the scale of each channel for int8.

    ``axis`` is the axis that a channel spans. The scale of a channel of zeros is 1.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype != ir.DataType.INT8:
            return weight.astype(dtype.numpy()), None
        largest = np.abs(weight).max(axis=axis, keepdims=True)
        scale = np.where(largest > 0, largest / np.float32(127), np.float32(1)).astype(np.float32)
        return np.clip(np.rint(weight / scale), -127, 127).astype(np.int8), scale


def _lacking(array: np.ndarray, stored: np.ndarray, stored_as: str) -> str:
    if not np.isfinite(array).all():
        return "has infinite or NaN values, with which no error can be measured"
    if np.isfinite(stored.astype(np.float32)).all():
        return ""
    largest, others = {"float16": ("65504", "bfloat16 or int8"), "bfloat16": ("3.39e38", "int8")}[stored_as]
    return f"has values above {largest}, which {stored_as} cannot store; use {others}"


class StoredWeight:
    """A weight that a model has twice: as float32 and in a smaller format.

    Its readers read one of the two.

    The constructor adds the smaller weight to the main graph. The readers read it from then on.

    Args:
        weight: the weight.
        stored_as: the name of the format.
        main: the main graph.
        names: the names of the model.

    Attributes:
        lacking: the numbers that the format cannot store, as a text; "" if there are none.
        float_bytes, stored_bytes: the size of the weight in each form.
    """

    def __init__(self, weight: Weight, stored_as: str, main: ir.Graph, names: Names) -> None:
        self.weight, self._main = weight, main
        dtype, hint = ir.DataType[stored_as.upper()], weight.value.name or "weight"
        array = np.asarray(weight.tensor.numpy())
        stored, scale = _rounded(array, dtype, weight.axis)
        self._constants: list[ir.Value] = []
        self._nodes: list[ir.Node] = []
        self.lacking = _lacking(array, stored, stored_as)
        self.float_bytes, self.stored_bytes = array.nbytes, stored.nbytes + (0 if scale is None else scale.nbytes)
        narrow = self._add_constant(stored, dtype, names.fresh(f"{hint}_{stored_as}"))
        to_float = ir.AttrInt64("to", ir.DataType.FLOAT.value)
        self._read = self._add_node("Cast", [narrow], [to_float], array.shape, names, hint)
        if scale is not None:
            factor = self._add_constant(scale, ir.DataType.FLOAT, names.fresh(f"{hint}_scale"))
            self._read = self._add_node("Mul", [self._read, factor], [], array.shape, names, hint)
        main.insert_before(main[0], self._nodes)
        self.use(stored=True)

    def use(self, *, stored: bool) -> None:
        """Let all readers read the smaller weight, or the float32 weight."""
        for node, position in self.weight.reads:
            node.replace_input_with(position, self._read if stored else self.weight.value)

    def remove_unread(self) -> None:
        """Remove the form that no node reads from the model."""
        if self._read.uses():
            _remove_constant(self.weight.value)
        else:
            remove_nodes(self._nodes)
            for constant in self._constants:
                del self._main.initializers[constant.name or ""]

    def _add_constant(self, array: np.ndarray, dtype: ir.DataType, name: str) -> ir.Value:
        tensor = ir.Tensor(array, dtype=dtype, name=name)
        value = ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(array.shape), const_value=tensor)
        self._main.register_initializer(value)
        self._constants.append(value)
        return value

    def _add_node(
        self, operator: str, inputs: list[ir.Value], attributes: list[ir.Attr], dims: tuple[int, ...], names: Names, hint: str
    ) -> ir.Value:
        output = ir.Value(name=names.fresh(f"{hint}_wide"), type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(dims))
        self._nodes.append(ir.Node("", operator, inputs, attributes, outputs=[output], name=names.fresh(f"{hint}_{operator}")))
        return output


def _remove_constant(value: ir.Value) -> None:
    producer, graph = value.producer(), value.graph
    if producer is not None:
        remove_nodes([producer])
    elif graph is not None:
        del graph.initializers[value.name or ""]
