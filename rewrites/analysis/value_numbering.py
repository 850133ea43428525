"""Value numbering: finds equal values, which the same operator computes from equal operands."""

from collections.abc import Hashable

import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic
from rewrites.graph.values import const_array, producer_of, through_identity
from rewrites.graph.walk import node_graphs
from rewrites.ops.versions import perm_of

__all__ = ["SameValues", "attribute_key", "through_transposes"]

_DEPTH = 50
_COMPARED_BYTES, _ATTRIBUTE_BYTES = 1 << 10, 1 << 12


class SameValues:
    """Numbers values, so that values with the same number are known to be equal.

    The numbers are valid as long as the model does not change.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[ir.Value, int] = {}

    def number(self, value: ir.Value | None, depth: int = 0) -> int | None:
        """Return the number of ``value``, or None if ``value`` is None.

        ``depth``: the number of nodes between ``value`` and the value of the first call. It limits the recursion.
        """
        value = through_identity(value)
        if value is None:
            return None
        source, axes = through_transposes(value)
        if axes is not None:
            same = self.number(source, depth + 1)
            straight = axes == tuple(range(len(axes)))
            return same if straight else self._numbers.setdefault(("axes", same, axes), len(self._numbers))
        if value not in self._known:
            self._known[value] = self._numbers.setdefault(self._key(value, depth), len(self._numbers))
        return self._known[value]

    def _key(self, value: ir.Value, depth: int) -> Hashable:
        array = const_array(value, limit=_COMPARED_BYTES)
        if array is not None and array.dtype.kind in "biuf":
            return (array.dtype.str, array.shape, array.tobytes())
        node = value.producer()
        if node is None or depth > _DEPTH or node_graphs(node) or not is_deterministic(node):
            return id(value)
        inputs = tuple(self.number(each, depth + 1) for each in node.inputs)
        attributes = frozenset((name, attribute_key(attribute)) for name, attribute in node.attributes.items())
        position = list(node.outputs).index(value)
        return (node.domain, node.op_type, node.overload, inputs, attributes, position, len(node.outputs))


def through_transposes(value: ir.Value) -> tuple[ir.Value, tuple[int, ...] | None]:
    """Return the source of ``value``, before a chain of Transposes and Identities, and their permutation.

    The permutation maps each axis of ``value`` to the axis of the source. It is None if the chain has no Transpose. If there is no
    chain, the source is ``value``.
    """
    axes: tuple[int, ...] | None = None
    while (node := producer_of(value, "Identity", "Transpose")) is not None:
        source = node.inputs[0]
        if source is None or source.shape is None:
            break
        if node.op_type == "Transpose":
            perm = perm_of(node, len(source.shape))
            axes = perm if axes is None else tuple(perm[axis] for axis in axes)
        value = source
    return value, axes


def attribute_key(attribute: ir.Attr) -> Hashable:
    """Return a key of ``attribute``. Attributes with the same key are equal.

    A tensor of more than 4096 bytes or of strings is only equal to itself.
    """
    if attribute.is_ref():
        return attribute.ref_attr_name
    if attribute.type == ir.AttributeType.TENSOR:
        tensor = attribute.as_tensor()
        if tensor.nbytes > _ATTRIBUTE_BYTES or tensor.dtype == ir.DataType.STRING:
            return id(tensor)
        return (tensor.dtype, tuple(tensor.shape.dims), tensor.tobytes())
    value = attribute.value
    return (attribute.type, tuple(map(_plain, value)) if isinstance(value, list | tuple) else _plain(value))


def _plain(value: object) -> Hashable:
    if isinstance(value, float):
        return repr(value)  # 0.0 == -0.0, but the two differ
    return value if isinstance(value, int | str | bytes) else id(value)
