"""Runs nodes whose inputs are constants, and replaces the nodes by their results.

A node that reads sizes from a shape is folded too if these sizes are known. Other sizes of the shape may be unknown:

    s = Shape (x)  n = Gather (s, 1)          x [T, 4]       ->    n = 4
    s = Shape (x)  n = Slice (s, [1], [3])    x [T, 4, 8]    ->    n = [4, 8]

A DequantizeLinear before a quantized product stays, because otherwise onnxruntime does not multiply integers:

    y = MatMul(DequantizeLinear(q, s, z), DequantizeLinear(W, t, u))

If the weights W were folded to float32, they would take four times the memory, and another kernel would round differently.

Works around ORT-DIVISION-OVERFLOW.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic
from rewrites.graph.context import Context, evaluate_nodes
from rewrites.graph.node_inference import LearnedShapes, infer_afresh, restore_shapes
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import const_array, producer_of, size_estimate, static_dims
from rewrites.graph.walk import node_graphs
from rewrites.ops.versions import SliceSpec, slice_range, slice_spec

__all__ = [
    "Folded",
    "computed_constants",
    "dequantizes_operand",
    "divides_by_zero",
    "fold",
    "positions_read",
    "put_constants",
    "quantized_products",
]

_LARGEST = 1 << 16
_MOST_NODES = 64
_PRODUCTS = frozenset({"Conv", "Gemm", "MatMul"})


@dataclass(frozen=True)
class Folded:
    """The ``nodes`` with constant results, and these ``constants``.

    ``inferred``: the shapes that ``fold`` inferred for results of nodes while it searched for constants.
    """

    nodes: Sequence[ir.Node]
    constants: Mapping[ir.Value, np.ndarray]
    inferred: LearnedShapes


def fold(nodes: Iterable[ir.Node], ctx: Context) -> Folded:
    """Compute the results of those ``nodes`` that are constant. Change neither nodes nor shapes.

    Producers must come before users, and no two nodes may have the same name.
    """
    original_shapes: dict[ir.Value, ir.Shape | None] = {}
    known: dict[ir.Value, np.ndarray] = {}
    to_run: list[ir.Node] = []
    computed: set[ir.Value] = set()
    done: list[ir.Node] = []
    for node in nodes:
        if node_graphs(node) or not is_deterministic(node) or _has_strings(node):
            continue
        array = _result_without_run(node)
        array = _sizes_read(node, ctx) if array is None else array
        if array is not None:
            known[node.outputs[0]] = array
            done.append(node)
        elif (
            node.inputs
            and node.domain == ""
            and _has_constant_inputs(node, known, computed)
            and not divides_by_zero(node, known)
            and not dequantizes_operand(node)
            and _is_small(node, ctx, original_shapes)
        ):
            to_run.append(node)
            computed.update(node.outputs)
    folded = _evaluate(to_run, known, ctx)
    known.update(folded)
    done += [node for node in to_run if all(value in folded for value in node.outputs if value.uses())]
    return Folded(done, known, restore_shapes(original_shapes))


def _has_strings(node: ir.Node) -> bool:
    return any(value is not None and value.dtype == ir.DataType.STRING for value in (*node.inputs, *node.outputs))


def _result_without_run(node: ir.Node) -> np.ndarray | None:
    """Return the result of a Constant, or of a Shape or Size of known dimensions; None for other nodes."""
    if node.op_type == "Constant":
        return const_array(node.outputs[0], limit=_LARGEST)
    source = node.inputs[0] if node.inputs else None
    if node.domain != "" or node.op_type not in ("Shape", "Size") or source is None or source.shape is None:
        return None
    dims = source.shape.dims[node.attributes.get_int("start") : node.attributes.get_int("end")]
    known = [dim for dim in dims if isinstance(dim, int)]
    if len(known) < len(dims):
        return None
    return np.array(known, np.int64) if node.op_type == "Shape" else np.array(math.prod(known), np.int64)


def _has_constant_inputs(node: ir.Node, known: dict[ir.Value, np.ndarray], computed: set[ir.Value]) -> bool:
    inputs = (value for value in node.inputs if value is not None)
    return all(value in known or value in computed or const_array(value) is not None for value in inputs)


def _is_small(node: ir.Node, ctx: Context, original_shapes: dict[ir.Value, ir.Shape | None]) -> bool:
    """Infer the shapes of results of ``node``, and return True if all results are known to be small."""
    results = [value for value in node.outputs if value.name]
    unknown = [value for value in results if static_dims(value) is None]
    shapes = infer_afresh(node, ctx.infer) if unknown else {}
    for value in unknown:
        original_shapes.setdefault(value, value.shape)
        value.shape = value.shape if shapes[value] is None else shapes[value]
    return all(static_dims(value) is not None and size_estimate(value, {}, 1) <= _LARGEST for value in results)


def _evaluate(nodes: list[ir.Node], known: dict[ir.Value, np.ndarray], ctx: Context) -> dict[ir.Value, np.ndarray]:
    """Run ``nodes`` and return their results; an empty dict if this fails. ``known``: computed constants."""
    if not nodes:
        return {}
    computed = {value for node in nodes for value in node.outputs}
    needed = {value for node in nodes for value in node.inputs if value is not None and value not in computed}
    constants = dict[ir.Value, np.ndarray]()
    for value in needed:
        array = known[value] if value in known else const_array(value)
        assert array is not None
        constants[value] = array
    read_results = [value for value in computed if value.uses()]
    results = evaluate_nodes([ir.serde.serialize_node(node) for node in nodes], constants, read_results, ctx)
    pairs = () if results is None else zip(read_results, results, strict=True)
    return {
        value: result
        for value, result in pairs
        if isinstance(value.type, ir.TensorType) and ir.DataType.from_numpy(result.dtype) == value.dtype
    }


def put_constants(folded: Folded, ctx: Context) -> None:
    """Let the users of the nodes in ``folded.nodes`` read the constants, and remove these nodes."""
    for node in folded.nodes:
        for value in node.outputs:
            if value.uses():
                replace_value(value, ctx.constants.value(folded.constants[value], value.name or "const"), ctx.names)
    remove_nodes(folded.nodes)


def computed_constants(values: Iterable[ir.Value], ctx: Context) -> dict[ir.Value, np.ndarray]:
    """Return the constants among ``values``, and those among the values from which they are computed.

    A value is skipped if too many nodes are needed to compute it.
    """
    nodes = {node: None for value in values for node in _backward_slice(value)}
    return dict(fold(nodes, ctx).constants) if nodes else {}


def _backward_slice(value: ir.Value) -> list[ir.Node]:
    """Return the nodes that compute ``value``, producers first; [] if there are too many.

    The search stops at Shape and Size nodes.
    """
    order: dict[ir.Node, None] = {}
    visited: set[ir.Node] = set()
    pending = [(value.producer(), False)]
    while pending:
        node, is_expanded = pending.pop()
        if node is None or node_graphs(node):
            continue
        if is_expanded:
            order.setdefault(node)
        elif node not in visited:
            visited.add(node)
            if len(visited) > _MOST_NODES:
                return []
            pending.append((node, True))
            if node.op_type not in ("Shape", "Size"):
                pending.extend((operand.producer(), False) for operand in node.inputs if operand is not None)
    return list(order)


def divides_by_zero(node: ir.Node, extra_constants: Mapping[ir.Value, np.ndarray]) -> bool:
    """Return True if ``node`` may divide integers by 0, or the smallest integer by -1.

    Both may crash onnxruntime. ``extra_constants``: constants in addition to those of the model.
    """
    divisor = node.inputs[1] if node.op_type in ("Div", "Mod") and len(node.inputs) == 2 else None
    if divisor is None or (divisor.dtype is not None and divisor.dtype.is_floating_point()):
        return False
    array = extra_constants[divisor] if divisor in extra_constants else const_array(divisor)
    return array is None or bool(np.isin(array, (0, -1)).any())


def _sizes_read(node: ir.Node, ctx: Context) -> np.ndarray | None:
    """Return the known sizes that the Gather or Slice ``node`` reads from a Shape, or None."""
    shape = producer_of(node.inputs[0], "Shape") if node.op_type in ("Gather", "Slice") and node.inputs else None
    source = None if shape is None else shape.inputs[0]
    if shape is None or source is None or source.shape is None:
        return None
    dims = list(source.shape.dims[shape.attributes.get_int("start") : shape.attributes.get_int("end")])
    positions = positions_read(node, len(dims), ctx.opset)
    if positions is None or any(not -len(dims) <= position < len(dims) for position in positions.reshape(-1).tolist()):
        return None
    read = [dims[position] for position in positions.reshape(-1).tolist()]
    known = [dim for dim in read if isinstance(dim, int)]
    return np.array(known, np.int64).reshape(positions.shape) if len(known) == len(read) else None


def positions_read(node: ir.Node, length: int, opset: int) -> np.ndarray | None:
    """Return the positions at which a Gather or Slice reads a vector of ``length``; None if unknown."""
    if node.domain != "" or node.op_type not in ("Gather", "Slice"):
        return None
    if node.op_type == "Gather":
        return const_array(node.inputs[1])
    spec = slice_spec(node, opset, 1)
    if not isinstance(spec, SliceSpec) or list(spec.axes) != [0]:
        return None
    return np.array(list(slice_range(spec.starts[0], spec.ends[0], spec.steps[0], length)), np.int64)


def dequantizes_operand(node: ir.Node) -> bool:
    """Return True if ``node`` is the DequantizeLinear of an operand of a quantized product."""
    return bool(quantized_products(node))


def quantized_products(node: ir.Node) -> list[ir.Node]:
    """Return the products that read the DequantizeLinear ``node`` and whose factors are all dequantized."""
    if not _dequantizes(node, node.graph):
        return []
    return [
        user
        for user in {user: None for user, _ in node.outputs[0].uses()}
        if user.op_type in _PRODUCTS
        and user.domain == ""
        and user.graph is node.graph
        and all(value is not None and _dequantizes(value.producer(), user.graph) for value in user.inputs[:2])
    ]


def _dequantizes(node: ir.Node | None, graph: ir.Graph | ir.Function | None) -> bool:
    return node is not None and node.op_type == "DequantizeLinear" and node.domain == "" and node.graph is graph
