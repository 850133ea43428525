"""Refuses models whose functions call each other so often that written out they would be larger than anything runs.

    f1 calls f0 ten times, f2 calls f1 ten times, …, the main graph calls f11    ->    10^12 nodes

onnxruntime writes all calls out when it loads a model, and so do inference and inlining. The nodes are counted without that, in
time that grows with the file.
"""

from collections import Counter
from collections.abc import Iterable

import onnx
import onnx_ir as ir

from ortscan.modelio.protos import bodies_in
from rewrites.base.errors import UnsupportedModel
from rewrites.base.postorder import postorder
from rewrites.graph.walk import all_nodes

__all__ = ["DEEPEST_CALLS", "MOST_CALLED_NODES", "called_nodes", "refuse_endless_calls"]

MOST_CALLED_NODES = 1 << 17
"""How many nodes the calls of functions may add up to: onnxruntime takes minutes to load half as many."""

DEEPEST_CALLS = 100
"""How deep functions may call each other: as deep as onnx and onnxruntime let them."""

_Key = tuple[str, str, str]
_MAIN = ("", "", "")
_COUNTLESS = 10**18


def refuse_endless_calls(model: onnx.ModelProto | ir.Model, name: str) -> None:
    """Raise UnsupportedModel where calls in ``model`` come to more nodes than MOST_CALLED_NODES, or are deeper than DEEPEST_CALLS.

    A circle is no call. Functions that nothing calls count too: inference writes their calls out as well.
    """
    written_out, depth = _measured(model)
    if written_out > MOST_CALLED_NODES:
        size = f"{written_out} nodes of its functions with all calls written out"
        raise UnsupportedModel(f"{name} would have {size}, more than the {MOST_CALLED_NODES} allowed.")
    if depth > DEEPEST_CALLS:
        raise UnsupportedModel(f"{name} has functions that call each other {depth} deep, more than the {DEEPEST_CALLS} allowed.")


def called_nodes(model: onnx.ModelProto | ir.Model) -> int:
    """Count the nodes that functions have with all calls written out."""
    return _measured(model)[0]


def _measured(model: onnx.ModelProto | ir.Model) -> tuple[int, int]:
    """Count the nodes with all calls written out, and how deep they are."""
    if not model.functions:
        return 0, 0
    nodes = _nodes_of_proto(model) if isinstance(model, onnx.ModelProto) else _nodes_of_ir(model)
    known: dict[_Key, int] = {}
    depths: dict[_Key, int] = {}
    for key in postorder(nodes, lambda key: [called for called in nodes[key] if called in nodes]):
        called = sum(count * known.get(callee, 0) for callee, count in nodes[key].items())
        known[key] = min(called + sum(nodes[key].values()), _COUNTLESS)
        depths[key] = 1 + max((depths[callee] for callee in nodes[key] if callee in depths), default=0)
    known[_MAIN] -= sum(nodes[_MAIN].values())
    return max(known.values()), max(depths.values()) - 1


def _nodes_of_proto(model: onnx.ModelProto) -> dict[_Key, Counter[_Key]]:
    """Count the nodes of each operator in the main graph and in each function, graphs nested in them included."""
    found: dict[_Key, Counter[_Key]] = {}
    owner = _MAIN
    for body, _ in bodies_in(model):
        if isinstance(body, onnx.FunctionProto):
            owner = (body.domain, body.name, body.overload)
        found.setdefault(owner, Counter()).update((node.domain, node.op_type, node.overload) for node in body.node)
    return found


def _nodes_of_ir(model: ir.Model) -> dict[_Key, Counter[_Key]]:
    bodies: dict[_Key, Iterable[ir.Node]] = {key: all_nodes(function) for key, function in model.functions.items()}
    return {key: Counter(node.op_identifier() for node in body) for key, body in [*bodies.items(), (_MAIN, all_nodes(model.graph))]}
