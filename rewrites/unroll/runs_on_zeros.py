"""Whether a branch runs at all, tried with zeros: shapes that do not fit each other may go unseen until then.

A branch that is never wanted may never have run. Whether numbers may harm it is another question
(``rewrites.analysis.speculation``).
"""

import numpy as np
import onnx
import onnx_ir as ir

from rewrites.graph.context import Context, evaluate_nodes
from rewrites.graph.values import const_array, static_dims

__all__ = ["runs_on_zeros"]

_MOST_ELEMENTS = 1 << 24
_READABLE = 1 << 16


def runs_on_zeros(branch: ir.Graph, ctx: Context) -> bool:
    """Whether onnxruntime runs ``branch``, all of whose sizes are known, on zeros; small constants are what they are.

    False also where a tensor in it is too large to try.
    """
    own = {value for node in branch for value in node.outputs} | set(branch.initializers.values())
    read = {value: None for node in branch for value in node.inputs if value is not None and value not in own}
    given = [*read, *branch.initializers.values(), *(value for value in branch.outputs if value not in own)]
    nodes, constants = list[onnx.NodeProto](), dict[ir.Value, np.ndarray]()
    for value in dict.fromkeys(given):
        dims = static_dims(value)
        if dims is None or value.dtype is None or value.dtype == ir.DataType.STRING:
            return False
        array = const_array(value, limit=_READABLE)
        if array is not None:
            constants[value] = array
        else:
            nodes += _zeros(value.name or "", dims, value.dtype)
    sizes = [static_dims(value) for node in branch for value in node.outputs if value.name]
    if any(dims is None or np.prod(dims, dtype=float) > _MOST_ELEMENTS for dims in [*sizes, *(static_dims(one) for one in given)]):
        return False
    nodes += [ir.serde.serialize_node(node) for node in branch]
    return evaluate_nodes(nodes, constants, dict.fromkeys(branch.outputs), ctx) is not None


def _zeros(name: str, dims: tuple[int, ...], kind: ir.DataType) -> list[onnx.NodeProto]:
    """Write zeros of a type by way of float32, which every version of ConstantOfShape and Cast has."""
    shape = onnx.helper.make_tensor(f"{name}/shape", onnx.TensorProto.INT64, [len(dims)], dims)
    return [
        onnx.helper.make_node("Constant", [], [f"{name}/shape"], value=shape),
        onnx.helper.make_node("ConstantOfShape", [f"{name}/shape"], [f"{name}/zeros"]),
        onnx.helper.make_node("Cast", [f"{name}/zeros"], [name], to=int(kind)),
    ]
