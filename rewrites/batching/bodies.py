"""The body of a nested loop or branch, made anew for all steps at once.

body(h, x) => (Tanh(Add(h, x)))    ->    body(h', x') => (Tanh(Add(h', x')))     with the steps as axis 0 of h' and x'

Works round ORT-SCAN-SHARED-OUTPUT and ORT-SCAN-RESULT-RANK.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.batching.alignment import repeated
from rewrites.batching.call import Call, Operand, Refused
from rewrites.batching.emission import Emission
from rewrites.graph.dims import with_axes
from rewrites.graph.values import dim_of

__all__ = ["batched_body", "body_for_all_steps", "for_all_steps"]


def body_for_all_steps(call: Call, body: ir.Graph, batched: Sequence[bool]) -> tuple[list[ir.Value], Emission]:
    """Emit all of ``body``, a graph of ``call.node``, into a builder of its own, and return its new inputs.

    ``batched`` tells which inputs carry the steps. Refuses, leaving nothing behind, where a node cannot be batched.
    """
    emission = Emission(body, call.build.another(), call.steps, around=call.captured, may_be_empty=call.may_be_empty)
    inputs = []
    for inner, varies in zip(body.inputs, batched, strict=True):
        inputs.append(_input_like(call, inner, varies))
        emission.place(inner, inputs[-1], varies)
    reason = emission.add_all(body)
    if reason is not None:
        emission.build.discard()
        raise Refused(reason)
    return inputs, emission


def batched_body(emission: Emission, inputs: Sequence[ir.Value], outputs: Sequence[tuple[ir.Value, bool]]) -> ir.Graph:
    """Make the graph of what was emitted; ``outputs`` are values of the old body, and whether each is to carry the steps.

    Each output gets a node of its own, without which onnxruntime computes garbage, and the shape that is declared for it, which
    onnxruntime asks for.
    """
    build = emission.build
    results = [emission.full(value) if varies else emission.get(value).value for value, varies in outputs]
    computed = {value for node in build.nodes for value in node.outputs}
    for i, result in enumerate(results):
        if result in computed:
            computed.remove(result)
        else:
            results[i] = build.op("Identity", result, hint=result.name)
    for result, (value, varies) in zip(results, outputs, strict=True):
        result.type = result.type or value.type
        if result.shape is None:
            result.shape = with_axes(value.shape, 0, *([None] if varies else []))
    nodes, build.nodes = build.nodes, []
    return ir.Graph(inputs, results, nodes=nodes, name=build.names.fresh(emission.body.name or "body"))


def for_all_steps(call: Call, operand: Operand, varies: bool) -> ir.Value:
    """Return the value of ``operand``, with the steps in front where it ``varies``."""
    return repeated(call.build, operand, call.steps) if varies else operand.value


def _input_like(call: Call, inner: ir.Value, varies: bool) -> ir.Value:
    shape = with_axes(inner.shape, 0, _steps_dim(call)) if varies else inner.shape
    return ir.Value(name=call.build.names.fresh(inner.name or "input"), type=inner.type, shape=shape)


def _steps_dim(call: Call) -> int | str | None:
    return next((dim_of(one.value, 0) for one in call.operands if isinstance(one, Operand) and one.batched), None)
