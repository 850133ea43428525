"""Whether the constant indices of a node name elements that there are, so that it cannot fail over them."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import const_array, static_dims

__all__ = ["INDEXED", "indices_fit"]


def _along_axis(node: ir.Node, dims: Sequence[int], _: np.ndarray) -> Sequence[int] | None:
    axis = node.attributes.get_int("axis", 0)
    return [dims[axis]] if axis is not None and -len(dims) <= axis < len(dims) else None


def _from_the_front(node: ir.Node, dims: Sequence[int], indices: np.ndarray) -> Sequence[int] | None:
    first = node.attributes.get_int("batch_dims", 0) or 0
    found = dims[first : first + indices.shape[-1]] if indices.ndim else ()
    return found if indices.ndim and len(found) == indices.shape[-1] else None


INDEXED: Mapping[str, Callable[[ir.Node, Sequence[int], np.ndarray], Sequence[int] | None]] = {
    "Gather": _along_axis,
    "GatherElements": _along_axis,
    "GatherND": _from_the_front,
    "Scatter": _along_axis,
    "ScatterElements": _along_axis,
    "ScatterND": _from_the_front,
}
"""The operators whose second input holds indices into the first: the sizes of the axes that those are for."""


def indices_fit(node: ir.Node) -> bool:
    """Whether the second input of ``node``, one of ``INDEXED``, is constant and within the known sizes of the first."""
    data, given = node.inputs[0], const_array(node.inputs[1])
    dims = None if data is None else static_dims(data)
    sizes = None if dims is None or given is None else INDEXED[node.op_type](node, dims, given)
    return sizes is not None and given is not None and bool(((given >= [-size for size in sizes]) & (given < list(sizes))).all())
