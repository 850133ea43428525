"""Runs nodes whose inputs are constants, and puts what they give in their place.

Works round ORT-DIVISION-OVERFLOW.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic
from rewrites.cleanup.quantized_products import dequantizes_operand
from rewrites.cleanup.sizes_read import sizes_read
from rewrites.graph.context import Context, evaluate_nodes
from rewrites.graph.node_inference import LearnedShapes, taken_back, told_anew
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import const_array, size_estimate, static_dims
from rewrites.graph.walk import node_graphs

__all__ = ["Folded", "divides_by_zero", "fold", "put_constants"]

_LARGEST = 1 << 16


@dataclass(frozen=True)
class Folded:
    """Nodes whose results are constant, ``done``; the constants that are ``known``, and the shapes ``learned`` on the way."""

    done: Sequence[ir.Node]
    known: Mapping[ir.Value, np.ndarray]
    learned: LearnedShapes


def fold(nodes: Iterable[ir.Node], ctx: Context) -> Folded:
    """Run those of ``nodes`` (producers before users, no name twice) whose results are constant; all shapes stay what they are."""
    before: dict[ir.Value, ir.Shape | None] = {}
    known: dict[ir.Value, np.ndarray] = {}
    work: list[ir.Node] = []
    made: set[ir.Value] = set()
    done: list[ir.Node] = []
    for node in nodes:
        if node_graphs(node) or not is_deterministic(node) or _has_strings(node):
            continue
        array = _directly(node)
        array = sizes_read(node, ctx) if array is None else array
        if array is not None:
            known[node.outputs[0]] = array
            done.append(node)
        elif (
            node.inputs
            and node.domain == ""
            and _has_constant_inputs(node, known, made)
            and not _may_kill(node, known)
            and not dequantizes_operand(node)
            and _is_small(node, ctx, before)
        ):
            work.append(node)
            made.update(node.outputs)
    folded = _run(work, known, ctx)
    known.update(folded)
    done += [node for node in work if all(value in folded for value in node.outputs if value.uses())]
    return Folded(done, known, taken_back(before))


def put_constants(folded: Folded, ctx: Context) -> None:
    """Let what reads the nodes that ``fold`` has done read constants, and remove them."""
    for node in folded.done:
        for value in node.outputs:
            if value.uses():
                replace_value(value, ctx.constants.value(folded.known[value], value.name or "const"), ctx.names)
    remove_nodes(folded.done)


def _has_strings(node: ir.Node) -> bool:
    return any(value is not None and value.dtype == ir.DataType.STRING for value in (*node.inputs, *node.outputs))


def _directly(node: ir.Node) -> np.ndarray | None:
    if node.op_type == "Constant":
        return const_array(node.outputs[0], limit=_LARGEST)
    source = node.inputs[0] if node.inputs else None
    if node.domain != "" or source is None or node.op_type not in ("Shape", "Size"):
        return None
    if source.shape is None:
        return None
    dims = source.shape.dims[node.attributes.get_int("start") : node.attributes.get_int("end")]
    known = [dim for dim in dims if isinstance(dim, int)]
    if len(known) < len(dims):
        return None
    return np.array(known, np.int64) if node.op_type == "Shape" else np.array(math.prod(known), np.int64)


def _has_constant_inputs(node: ir.Node, known: dict[ir.Value, np.ndarray], made: set[ir.Value]) -> bool:
    given = (value for value in node.inputs if value is not None)
    return all(value in known or value in made or const_array(value) is not None for value in given)


def _may_kill(node: ir.Node, known: dict[ir.Value, np.ndarray]) -> bool:
    """Whether ``node`` divides integers by what may be 0, or -1 (the smallest one): onnxruntime ends the process at that."""
    return divides_by_zero(node, known)


def divides_by_zero(node: ir.Node, known: Mapping[ir.Value, np.ndarray]) -> bool:
    """Whether ``node`` may divide integers by 0, or by -1, given the constants ``known`` beside those of the model."""
    by = node.inputs[1] if node.op_type in ("Div", "Mod") and len(node.inputs) == 2 else None
    if by is None or (by.dtype is not None and by.dtype.is_floating_point()):
        return False
    array = known[by] if by in known else const_array(by)
    return array is None or bool(np.isin(array, (0, -1)).any())


def _is_small(node: ir.Node, ctx: Context, before: dict[ir.Value, ir.Shape | None]) -> bool:
    """Whether the results are known to be small before they are computed (an Expand can make any size of a few bytes)."""
    results = [value for value in node.outputs if value.name]
    vague = [value for value in results if static_dims(value) is None]
    found = told_anew(node, ctx.infer) if vague else {}
    for value in vague:
        before.setdefault(value, value.shape)
        value.shape = value.shape if found[value] is None else found[value]
    return all(static_dims(value) is not None and size_estimate(value, {}, 1) <= _LARGEST for value in results)


def _run(work: list[ir.Node], known: dict[ir.Value, np.ndarray], ctx: Context) -> dict[ir.Value, np.ndarray]:
    if not work:
        return {}
    made = {value for node in work for value in node.outputs}
    needed = {value for node in work for value in node.inputs if value is not None and value not in made}
    constants = dict[ir.Value, np.ndarray]()
    for value in needed:
        array = known[value] if value in known else const_array(value)
        assert array is not None
        constants[value] = array
    wanted = [value for value in made if value.uses()]
    results = evaluate_nodes([ir.serde.serialize_node(node) for node in work], constants, wanted, ctx)
    if results is None:
        return {}
    found = zip(wanted, results, strict=True)
    return {
        value: result
        for value, result in found
        if isinstance(value.type, ir.TensorType) and ir.DataType.from_numpy(result.dtype) == value.dtype
    }
