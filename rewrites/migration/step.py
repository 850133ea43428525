"""Defines ``Step``, the argument of functions that convert a node to another version of its operator."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.builder import Builder, ConstantPool
from rewrites.graph.values import const_array, rank_of

__all__ = ["NotKnownHere", "Rule", "Step", "Unconvertible", "Written"]

Written = Sequence[ir.Value] | None
"""The values that replace the outputs of a node, or None if the node may stay unchanged."""


class Unconvertible(Exception):
    """Raised if a node cannot be written in the next version of its operator. The message is the reason."""


class NotKnownHere(Unconvertible):
    """Raised if a conversion needs an attribute value, a type or a rank that is unknown in this graph.

    If the graph is a function, the missing information may be known after the function is inlined.
    """


class Step:
    """Reads a node, and writes it in the next or the previous version of its operator.

    Args:
        node: The node.
        constants: Holds the constants of the new nodes.
        builder: Writes the new nodes, in the opset of the new version.
        target: The opset to which the whole model is converted.

    Attributes:
        written: New nodes that are already in a later opset than that of ``builder``, each with its opset.
    """

    def __init__(self, node: ir.Node, constants: ConstantPool, builder: Builder, target: int) -> None:
        self.node = node
        self._constants = constants
        self.builder = builder
        self.target = target
        self.written: dict[ir.Node, int] = {}

    def rewrite_with(self, inputs: Sequence[ir.Value | None] | None = None, **changed: Any) -> tuple[ir.Value, ...]:
        """Write the node with other inputs or attributes, and return its results.

        Args:
            inputs: The new inputs. By default, the inputs stay the same.
            **changed: The attributes that change. None removes an attribute.
        """
        return self.rewrite_as(self.node.op_type, inputs, **changed)

    def with_outputs(self, count: int) -> tuple[ir.Value, ...]:
        """Write the node with only its first ``count`` outputs, and return its results."""
        return self._write(self.node.op_type, self.node.inputs, self.node.outputs[:count], {})

    def rewrite_as(self, op_type: str, inputs: Sequence[ir.Value | None] | None = None, **changed: Any) -> tuple[ir.Value, ...]:
        """Write the node as the operator ``op_type``, and return its results.

        If the first input stays the same, the results keep their types and shapes. Otherwise types and shapes are inferred.

        Args:
            op_type: The operator.
            inputs: The new inputs. By default, the inputs stay the same.
            **changed: The attributes that change. None removes an attribute.
        """
        return self._write(op_type, self.node.inputs if inputs is None else inputs, self.node.outputs, changed)

    def _write(
        self, op_type: str, inputs: Sequence[ir.Value | None], old_outputs: Sequence[ir.Value], changed: Mapping[str, Any]
    ) -> tuple[ir.Value, ...]:
        node, builder = self.node, self.builder
        keep = [attribute for name, attribute in node.attributes.items() if name not in changed]
        added = ir.convenience.convert_attributes({name: value for name, value in changed.items() if value is not None})
        operands = list(inputs)
        hint = node.outputs[0].name if node.outputs else None
        if not operands or operands[0] is not node.inputs[0] or any(value.type is None for value in old_outputs):
            return builder.node(op_type, operands, len(old_outputs), [*keep, *added], hint=hint)
        while operands and operands[-1] is None:
            operands.pop()
        outputs = [ir.Value(name=builder.names.fresh(hint or op_type), type=value.type, shape=value.shape) for value in old_outputs]
        builder.nodes.append(ir.Node("", op_type, operands, [*keep, *added], outputs=outputs, name=builder.names.fresh(op_type)))
        return tuple(outputs)

    def reshape_back(self, x: ir.Value, shape: ir.Value) -> ir.Value:
        """Reshape ``x`` to the sizes in the tensor ``shape``.

        A 0 in ``shape`` means size 0 (``allowzero``) if the target opset is at least 14. Below, it copies a size of ``x``.
        """
        if self.target < since.ALLOWZERO:
            return self.builder.op("Reshape", x, shape)
        later = Builder(self.builder.names, self._constants, {"": since.ALLOWZERO}, 8)
        result = later.op("Reshape", x, shape, allowzero=1)
        self.written.update(dict.fromkeys(later.nodes, since.ALLOWZERO))
        self.builder.nodes += later.nodes
        return result

    def scalar(self, number: float, dtype: ir.DataType) -> ir.Value:
        """Return ``number`` as a constant of rank 0 and of the element type ``dtype``."""
        with np.errstate(over="ignore"):
            return self.builder.const(np.asarray(number, dtype=dtype.numpy()))

    def value(self, index: int) -> ir.Value | None:
        """Return input ``index``, or None if the input is absent."""
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def required(self, index: int) -> ir.Value:
        """Return input ``index``. Raise Unconvertible if the input is absent."""
        value = self.value(index)
        if value is None:
            raise Unconvertible(f"its input {index} is missing")
        return value

    def constant(self, index: int, what: str) -> np.ndarray | None:
        """Return the array of the constant input ``index``, or None if the input is absent.

        Raise NotKnownHere if the input is not constant. ``what``: the name of the input in the message.
        """
        value = self.value(index)
        array = const_array(value)
        if value is not None and array is None:
            raise NotKnownHere(f"its {what} are not constant")
        return array

    def constant_ints(self, index: int, what: str) -> list[int] | None:
        """Return the constant input ``index`` as a list of integers; None if the input is absent.

        Raise NotKnownHere if the input is not constant. ``what``: the name of the input in the message.
        """
        array = self.constant(index, what)
        return None if array is None else [int(item) for item in array.reshape(-1)]

    def constant_float(self, index: int, name: str) -> float | None:
        """Return the number in the constant input ``index``; None if the input is absent or empty.

        Raise NotKnownHere if the input is not constant, and Unconvertible if float32 cannot represent the number. ``name``: the
        name of the input in the message.
        """
        array = self.constant(index, name)
        if array is None or array.size == 0:
            return None
        number = array.reshape(-1)[0]
        if np.float32(number) != number and not np.isnan(number):
            raise Unconvertible(f"its '{name}' is not a float32, but attributes are")
        return float(number)

    def rank(self, index: int = 0) -> int | None:
        """Return the rank of input ``index``; None if the rank is unknown."""
        return rank_of(self.required(index))

    def known_rank(self, index: int = 0) -> int:
        """Return the rank of input ``index``. Raise NotKnownHere if the rank is unknown."""
        rank = self.rank(index)
        if rank is None:
            raise NotKnownHere(f"the rank of its input {index} is not known")
        return rank

    def dtype(self, index: int = 0) -> ir.DataType:
        """Return the element type of input ``index``. Raise NotKnownHere if the type is unknown."""
        dtype = self.required(index).dtype
        if dtype is None:
            raise NotKnownHere(f"the element type of its input {index} is not known")
        return dtype

    def has(self, name: str) -> bool:
        """Return True if the node has the attribute ``name``."""
        return name in self.node.attributes

    def int_(self, name: str, default: int) -> int:
        """Return the int attribute ``name``, or ``default`` if the attribute is absent."""
        attribute = self._attribute(name, ir.AttributeType.INT)
        return default if attribute is None else attribute.as_int()

    def float_(self, name: str) -> float | None:
        """Return the float attribute ``name``, or None if the attribute is absent."""
        attribute = self._attribute(name, ir.AttributeType.FLOAT)
        return None if attribute is None else attribute.as_float()

    def string(self, name: str, default: str) -> str:
        """Return the string attribute ``name``, or ``default`` if the attribute is absent."""
        attribute = self._attribute(name, ir.AttributeType.STRING)
        return default if attribute is None else attribute.as_string()

    def ints(self, name: str) -> list[int] | None:
        """Return the ints attribute ``name``, or None if the attribute is absent."""
        attribute = self._attribute(name, ir.AttributeType.INTS)
        return None if attribute is None else list(attribute.as_ints())

    def floats(self, name: str) -> list[float] | None:
        """Return the floats attribute ``name``, or None if the attribute is absent."""
        attribute = self._attribute(name, ir.AttributeType.FLOATS)
        return None if attribute is None else list(attribute.as_floats())

    def _attribute(self, name: str, kind: ir.AttributeType) -> ir.Attr | None:
        attribute = self.node.attributes.get(name)
        if attribute is not None and attribute.is_ref():
            raise NotKnownHere(f"its attribute '{name}' refers to an attribute of the function around it")
        if attribute is not None and attribute.type != kind:
            raise Unconvertible(f"its attribute '{name}' is of type {attribute.type.name}, not {kind.name}")
        return attribute


Rule = Callable[[Step], Written]
"""A function that writes a node in the next version of its operator. It may raise Unconvertible."""
