"""Cutting one loop out of two models at values that both have, so that it can be compared by itself.

    before:  x ─► MatMul ─► p ─► Scan ─► y ─► rest           after:  x ─► MatMul ─► p ─► LSTM ─► Squeeze ─► y ─► rest

    before:  p ─► Scan ─► y                                  after:  p ─► LSTM ─► Squeeze ─► y

A model is only cut at floats that may hold anything: a rewrite may rest on what a mask, a count or a shape can be, so these are
computed as they were. Both sides must then depend on the same values; where one rests on another value it is not cut there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx

from ortscan.running.graph_index import GraphIndex

__all__ = ["Cut", "cut_loop"]

_FROM_FIRST = frozenset(["Transpose", "Reshape", "Squeeze", "Unsqueeze", "Slice", "Split", "Identity", "Gather", "Dropout"])
_ARITHMETIC = frozenset(["Add", "Mul", "Sub", "Div", "Concat"])
_PRODUCTS = frozenset(["MatMul", "Gemm", "Conv", "Einsum", "Scan", "Loop", "LSTM", "GRU", "RNN"])
_MAPS = frozenset(["Tanh", "Sigmoid", "Relu", "Gelu", "Softmax", "LayerNormalization", "BatchNormalization"])
_GENERAL = _FROM_FIRST | _ARITHMETIC | _PRODUCTS | _MAPS
_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
_DEEPEST = 12
_ROUNDS = 20
_FARTHEST = 40


@dataclass(frozen=True)
class Cut:
    """What to compare: the nodes of both sides, by position, the values they share and the values they give."""

    before: Sequence[int]
    after: Sequence[int]
    inputs: Sequence[str]
    outputs: Sequence[str]


def cut_loop(
    position: int, before: GraphIndex, after: GraphIndex, types: Mapping[str, onnx.TypeProto], most_nodes: int
) -> Cut | str:
    """Cut the loop at ``position`` out of both, or return why it cannot be."""
    outputs = _results(position, before, after)
    if not outputs:
        return "nothing that it gives has a name in both models"
    taken = before.forward(outputs)
    shared = after.producers.keys() & before.producers.keys() - taken
    stops = {name for name in shared if _is_general(name, before, types)}
    for _ in range(_ROUNDS):
        old, new = before.backward(outputs, stops, most_nodes), after.backward(outputs, stops, most_nodes)
        if isinstance(old, str) or isinstance(new, str):
            return f"the original {old}" if isinstance(old, str) else f"the result {new}"
        apart = (old.leaves ^ new.leaves) & stops
        if not apart:
            break
        stops -= apart
    else:
        return "the two models have no common values near it"
    leaves = sorted(old.leaves | new.leaves)
    untyped = [name for name in (*leaves, *outputs) if name not in types]
    if untyped:
        return f"the type of '{untyped[0]}' is not known"
    return Cut(sorted(old.nodes), sorted(new.nodes), leaves, outputs)


def _results(position: int, before: GraphIndex, after: GraphIndex) -> list[str]:
    """Return the nearest values made of the loop's results that the other model has as well."""
    found: dict[str, None] = {}
    pending = [name for name in before.nodes[position].output if name]
    seen = set(pending)
    while pending and len(seen) < _FARTHEST:
        name = pending.pop(0)
        if name in after.producers:
            found[name] = None
            continue
        for user in before.users(name):
            fresh = [each for each in before.nodes[user].output if each and each not in seen]
            seen.update(fresh)
            pending += fresh
    return list(found)


def _is_general(name: str, index: GraphIndex, types: Mapping[str, onnx.TypeProto], depth: int = 0) -> bool:
    """Return whether a value is a float that may be anything for all a rewrite can know."""
    if name not in types or types[name].tensor_type.elem_type not in _FLOATS or depth > _DEEPEST:
        return False
    if name not in index.producers:
        return name in index.inputs
    node = index.nodes[index.producers[name]]
    if node.op_type not in _GENERAL:
        return False
    if node.op_type in _FROM_FIRST:
        source = node.input[0]
        return source in index.initializers if node.op_type == "Gather" else _is_general(source, index, types, depth + 1)
    if node.op_type in _ARITHMETIC:
        return all(each in index.initializers or _is_general(each, index, types, depth + 1) for each in _filled(node.input))
    return True


def _filled(names: Iterable[str]) -> list[str]:
    return [name for name in names if name]
