"""Tests if operators are speculatable: such operators never fail, even if they run more often.

A branch that never ran in the original may contain shapes that contradict each other. ``runs_on_zeros`` tests this by running the
branch.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

import numpy as np
import onnx
import onnx_ir as ir

from rewrites.analysis.dependence import cannot_fail, varying_values
from rewrites.graph.context import Context, evaluate_nodes
from rewrites.graph.values import const_array, const_scalar, rank_of, static_dims
from rewrites.graph.walk import node_graphs
from rewrites.ops.traits import operators

__all__ = ["INDEXED", "node_failing_on_elements", "indices_fit", "node_failing_if_run", "runs_on_zeros"]


_PLAIN = operators("calculates")
_STRUCTURED = operators("shaped")
_INDEXED = operators("indexed")
_RECURRENT = operators("recurrent")
_LENGTHS = 4
_MOST_ELEMENTS = 1 << 24
_READABLE = 1 << 16


def node_failing_on_elements(body: ir.Graph, seeds: Iterable[ir.Value]) -> ir.Node | None:
    """Return a node of ``body`` that may fail for other elements of ``seeds``, or None.

    A node may fail if it divides integers, if it indexes a tensor, or if it reads sizes, counts or conditions. Operators that only
    calculate never fail; at worst they return NaN. Operators of other domains are assumed to fail.
    """
    varying = varying_values(body, seeds)
    return next((node for node in body if _may_fail(node, varying)), None)


def node_failing_if_run(branch: ir.Graph) -> ir.Node | None:
    """Return a node of ``branch`` that may fail if the branch always runs, or None.

    A node may fail if a size is unknown, or if an operand may have elements that it does not accept. Constant operands, such as
    indices, are checked too: they may be invalid, because the original model may never have run the branch.
    """
    read = {value: None for node in branch for value in node.inputs if value is not None}
    seeds = [value for value in read if value.producer() is None or value.graph is not branch]
    culprit = node_failing_on_elements(branch, [value for value in seeds if const_array(value) is None])
    for node in branch:
        sized = all(value is None or static_dims(value) is not None for value in [*node.inputs, *node.outputs])
        if culprit is None and not cannot_fail(node) and not (sized and _accepts_its_constants(node)):
            culprit = node
    return culprit


def _accepts_its_constants(node: ir.Node) -> bool:
    if node.op_type in INDEXED and node.domain == "":
        return indices_fit(node)
    if node.op_type == "CumSum" and node.domain == "":
        axis, rank = const_scalar(node.inputs[1]), rank_of(node.outputs[0])
        return axis is not None and rank is not None and -rank <= axis < rank
    varies = any(value is not None and const_array(value) is None for value in node.inputs)
    return varies or (node.domain == "" and node.op_type in _PLAIN | _STRUCTURED | {"ConstantOfShape"})


def _may_fail(node: ir.Node, varying: Set[ir.Value]) -> bool:
    changed = [value is not None and value in varying for value in node.inputs]
    if node_graphs(node):
        return True
    if not any(changed):
        return False
    if node.domain != "":
        return True
    if node.op_type in ("Div", "Mod", "Cast"):
        source = node.inputs[1 if node.op_type != "Cast" else 0]
        return (
            source is None
            or source.dtype is None
            or not (source.dtype.is_floating_point() or node.op_type == "Cast")
            or (source.dtype == ir.DataType.STRING)
        )
    if node.op_type in _STRUCTURED:
        return any(changed[1:])
    if node.op_type in _INDEXED:
        return changed[1]
    if node.op_type in _RECURRENT:
        return any(changed[_LENGTHS : _LENGTHS + 1])
    return node.op_type not in _PLAIN


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
"""The operators whose second input contains indices into the first. The functions return the sizes of the indexed axes."""


def indices_fit(node: ir.Node) -> bool:
    """Return True if the indices of ``node`` are constant and within the sizes of the indexed axes.

    Return False if a size is unknown. The operator of ``node`` must be one of ``INDEXED``.
    """
    data, given = node.inputs[0], const_array(node.inputs[1])
    dims = None if data is None else static_dims(data)
    sizes = None if dims is None or given is None else INDEXED[node.op_type](node, dims, given)
    return sizes is not None and given is not None and bool(((given >= [-size for size in sizes]) & (given < list(sizes))).all())


def runs_on_zeros(branch: ir.Graph, ctx: Context) -> bool:
    """Run ``branch`` with zeros for the values from outside. Return True if onnxruntime raises no error.

    Small constants from outside keep their elements. Return False if a size is unknown or a tensor is too large to try.
    """
    own = {value for node in branch for value in node.outputs} | set(branch.initializers.values())
    read = {value: None for node in branch for value in node.inputs if value is not None and value not in own}
    inputs = [*read, *branch.initializers.values(), *(value for value in branch.outputs if value not in own)]
    nodes, constants = list[onnx.NodeProto](), dict[ir.Value, np.ndarray]()
    for value in dict.fromkeys(inputs):
        dims = static_dims(value)
        if dims is None or value.dtype is None or value.dtype == ir.DataType.STRING:
            return False
        array = const_array(value, limit=_READABLE)
        if array is not None:
            constants[value] = array
        else:
            nodes += _zeros(value.name or "", dims, value.dtype)
    results = [value for node in branch for value in node.outputs if value.name]
    sizes = [static_dims(value) for value in (*results, *inputs)]
    if any(dims is None or np.prod(dims, dtype=float) > _MOST_ELEMENTS for dims in sizes):
        return False
    nodes += [ir.serde.serialize_node(node) for node in branch]
    return evaluate_nodes(nodes, constants, dict.fromkeys(branch.outputs), ctx) is not None


def _zeros(name: str, dims: tuple[int, ...], kind: ir.DataType) -> list[onnx.NodeProto]:
    """Return nodes that compute a tensor of zeros. Its name is ``name``, and its type is ``kind``.

    A Cast converts float32 zeros to this type, because every version of ConstantOfShape and Cast supports float32.
    """
    shape = onnx.helper.make_tensor(f"{name}/shape", onnx.TensorProto.INT64, [len(dims)], dims)
    return [
        onnx.helper.make_node("Constant", [], [f"{name}/shape"], value=shape),
        onnx.helper.make_node("ConstantOfShape", [f"{name}/shape"], [f"{name}/zeros"]),
        onnx.helper.make_node("Cast", [f"{name}/zeros"], [name], to=int(kind)),
    ]
