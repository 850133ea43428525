"""A Scan or Loop inside the body: the new inner loop works on all steps of the outer loop at once.

    ys = Scan(h0, xs) body(h, x)    ->    ys' = Transpose(Scan(h0', Transpose(xs')) body(h', x'))
    Loop(M, c, s0) body(i, c, s)    ->    Loop(M, c, s0') body(i, c, s')      stacked results are transposed to [steps, trips, …]

A batched tensor has the steps as axis 0 and a scanned axis after it, so a Transpose moves the scanned axis to axis 0. (onnxruntime
crashes if a scanned axis is not axis 0 and a size is 0.) A state is batched if its initial value or its next value is batched.

The trip count and the condition of a Loop must be the same in every step of the outer loop. If a stacked result of a Loop is
batched, its rank must be known and the Loop must run at least once, because onnxruntime guesses the sizes of empty results. An
opset-8 Scan is not batched.

Works around ORT-SCAN-MOVED-AXES, ORT-LOOP-NO-STEPS-SIZES, ORT-SCAN-SHARED-OUTPUT and ORT-SCAN-RESULT-RANK.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.batching.alignment import stacked_value
from rewrites.batching.call import Call, Operand, Refused, Result
from rewrites.batching.emission import Emission
from rewrites.batching.table import rule
from rewrites.graph.dims import with_axes
from rewrites.graph.marks import hand_on
from rewrites.graph.values import dim_of, rank_of
from rewrites.loops import LoopView, ScanInput, ScanOutput, ScanView, State, make_scan
from rewrites.ops.versions import move_axis_first, move_first_axis, transpose

__all__ = ["batched_body", "body_for_all_steps", "nested_loop", "nested_scan", "outer_input"]


@rule("Scan", since=9)
def nested_scan(call: Call) -> Sequence[Result]:
    """Emit a Scan whose body works on all steps of the outer loop.

    A state that is the same in every step of the outer loop is not batched.
    """
    loop = ScanView.of(call.node, call.opset)
    operands = [call.operand(index) for index in range(len(call.operands))]
    count = len(loop.states)
    if any(scan.axis < 0 for scan in loop.scan_inputs) or any(output.axis < 0 for output in loop.scan_outputs):
        raise call.refuse("RANK-UNKNOWN", "a scanned axis counts from the end of a tensor of unknown rank")
    batched = [operand.batched for operand in operands]
    inputs, emission = _emit_until_stable(call, loop, batched)
    batched_results = [*batched[:count], *(emission.get(output.inner).batched for output in loop.scan_outputs)]
    entering = [
        _Axis.of(scan.axis, scan.inner, flag, operand.value)
        for scan, operand, flag in zip(loop.scan_inputs, operands[count:], batched[count:], strict=True)
    ]
    leaving = [
        _Axis.of(output.axis, output.inner, flag) for output, flag in zip(loop.scan_outputs, batched_results[count:], strict=True)
    ]
    if any(scanned.index and scanned.rank is None for scanned in (*entering, *leaving)):
        emission.build.discard()
        raise call.refuse("RANK-UNKNOWN", "the rank of a scanned or stacked tensor is not known")
    body = batched_body(emission, inputs, list(zip(loop.body.outputs, batched_results, strict=True)))
    states = [State(outer_input(call, operands[i], batched[i]), inputs[i], body.outputs[i], None) for i in range(count)]
    scans = [
        ScanInput(scanned.to_front(call, operand.value), inner, 0, scan.reverse)
        for scanned, scan, operand, inner in zip(entering, loop.scan_inputs, operands[count:], inputs[count:], strict=True)
    ]
    outputs = [
        ScanOutput(value, None, 0, output.reverse) for value, output in zip(body.outputs[count:], loop.scan_outputs, strict=True)
    ]
    node = make_scan(call.build.names, body, states, scans, outputs, call.node.name or "Scan")
    hand_on(call.node, node)
    call.build.nodes.append(node)
    stacks = [scanned.from_front(call, value) for scanned, value in zip(leaving, node.outputs[count:], strict=True)]
    return [Result(value, flag) for value, flag in zip([*node.outputs[:count], *stacks], batched_results, strict=True)]


@dataclass(frozen=True)
class _Axis:
    """A scanned axis of a tensor.

    Attributes:
        index: The index of the axis.
        rank: The rank of the tensor, or None if it is unknown.
    """

    index: int
    rank: int | None

    @classmethod
    def of(cls, axis: int, inner: ir.Value, batched: bool, outer: ir.Value | None = None) -> "_Axis":
        """Return the scanned axis of a tensor.

        Args:
            axis: The scanned axis in one step.
            inner: The row that one iteration reads or returns, with its shape in one step.
            batched: True if the tensor is batched, so that the axis is shifted.
            outer: The tensor, if it exists already. Its rank is used if it is known.
        """
        rank, outer_rank = rank_of(inner), None if outer is None else rank_of(outer)
        return cls(axis + batched, rank + 1 + batched if outer_rank is None and rank is not None else outer_rank)

    def to_front(self, call: Call, x: ir.Value) -> ir.Value:
        """Transpose ``x`` so that the scanned axis becomes axis 0."""
        return move_axis_first(call.build, x, self.index, self.rank or 0)

    def from_front(self, call: Call, x: ir.Value) -> ir.Value:
        """Transpose ``x`` so that axis 0 moves to the position of the scanned axis."""
        return move_first_axis(call.build, x, self.index, self.rank or 0)


def _emit_until_stable(
    call: Call, loop: ScanView | LoopView, batched: list[bool], batched_before: Sequence[bool] = ()
) -> tuple[list[ir.Value], Emission]:
    """Emit the body for all steps of the outer loop. Return the inputs of the new body, and the emission.

    If the next value of a state is batched, the state must be batched too. Then the body is emitted again, until no further state
    becomes batched.

    Args:
        call: The inner loop as a node to batch.
        loop: The inner loop as a view.
        batched: For each state and each scan input, True if it is batched. This list is updated.
        batched_before: Flags like ``batched``, for the inputs of the body before the states, such as the step number of a Loop.
    """
    while True:
        inputs, emission = body_for_all_steps(call, loop.body, [*batched_before, *batched])
        grown = [i for i, state in enumerate(loop.states) if not batched[i] and emission.get(state.next).batched]
        if not grown:
            return inputs, emission
        emission.build.discard()
        for i in grown:
            batched[i] = True


@rule("Loop")
def nested_loop(call: Call) -> Sequence[Result]:
    """Emit a Loop whose body works on all steps of the outer loop.

    A state that is the same in every step of the outer loop is not batched.
    """
    loop = LoopView.of(call.node, call.opset)
    call.require_invariant(0, 1)
    if any(not isinstance(value.type, ir.TensorType) for value in [*call.node.outputs, *loop.body.inputs]):
        raise call.refuse("CONTROL-FLOW", "a state or result is not a tensor, or of unknown type")
    operands = [call.operand(index) for index in range(2, len(call.operands))]
    batched = [operand.batched for operand in operands]
    inputs, emission = _emit_until_stable(call, loop, batched, [False, False])
    batched_stacks = _are_stacks_batched(call, loop, emission)
    flags = [False, *batched, *batched_stacks]
    body = batched_body(emission, inputs, list(zip(loop.body.outputs, flags, strict=True)))
    initial = [outer_input(call, operand, flag) for operand, flag in zip(operands, batched, strict=True)]
    outputs = call.build.node(
        "Loop", [call.value(0), call.value(1), *initial], len(flags) - 1, [ir.AttrGraph("body", body)], hint=call.node.name
    )
    hand_on(call.node, call.build.nodes[-1])
    results = []
    for value, like in zip(outputs, loop.body.outputs[1:], strict=True):
        value.type = like.type if value.type is None else value.type
        results.append(value)
    for i, (output, flag) in enumerate(zip(loop.scan_outputs, batched_stacks, strict=True), start=len(batched)):
        rank = rank_of(output.inner)
        if flag and rank is not None:
            results[i] = transpose(call.build, results[i], [1, 0, *range(2, rank + 2)])
    return [Result(value, flag) for value, flag in zip(results, flags[1:], strict=True)]


def _are_stacks_batched(call: Call, loop: LoopView, emission: Emission) -> list[bool]:
    """Return, for each stacked result, True if it is batched.

    If the Loop is unsupported (see the module docstring), discard the new nodes and raise Refused.
    """
    batched = [emission.get(output.inner).batched for output in loop.scan_outputs]
    reason = None
    if emission.get(loop.condition_out).batched:
        reason = call.refuse("BATCHED-STRUCTURE", "its condition differs between steps")
    for output, flag in zip(loop.scan_outputs, batched, strict=True):
        if flag and rank_of(output.inner) is None:
            reason = call.refuse("RANK-UNKNOWN", f"the rank of {output.inner.name!r} is not known")
        elif flag and not loop.always_runs:
            reason = call.refuse("EMPTY-STEPS", "it may run no step, and the sizes of its stacked results would be guesses")
    if reason is not None:
        emission.build.discard()
        raise reason
    return batched


def body_for_all_steps(call: Call, body: ir.Graph, batched: Sequence[bool]) -> tuple[list[ir.Value], Emission]:
    """Emit all nodes of ``body`` for all steps, in a new builder.

    Args:
        call: The operator that contains the body.
        body: The body.
        batched: For each input of the body, True if it is batched.

    Returns:
        The new inputs of the body, and the emission with the new nodes.

    Raises:
        Refused: A node cannot be emitted. The new nodes are discarded.
    """
    emission = Emission(body, call.build.another(), call.steps, captured=call.captured, may_be_empty=call.may_be_empty)
    inputs = []
    for inner, varies in zip(body.inputs, batched, strict=True):
        inputs.append(_input_like(call, inner, varies))
        emission.set(inner, inputs[-1], varies)
    reason = emission.add_all(body)
    if reason is not None:
        emission.build.discard()
        raise Refused(reason)
    return inputs, emission


def batched_body(emission: Emission, inputs: Sequence[ir.Value], outputs: Sequence[tuple[ir.Value, bool]]) -> ir.Graph:
    """Return a graph of the nodes in ``emission``.

    Each output has a declared shape and is computed by a separate node, because onnxruntime needs both.

    Args:
        emission: The emission of the old body.
        inputs: The inputs of the new graph.
        outputs: Pairs (output of the old body, True if the new output is batched).
    """
    build = emission.build
    results = [emission.stack_of(value) if varies else emission.get(value).value for value, varies in outputs]
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


def outer_input(call: Call, operand: Operand, batched: bool) -> ir.Value:
    """Return the value of ``operand`` as an input of the new loop.

    ``batched``: True if the new input has the steps as axis 0. A loop-invariant operand is then repeated for every step.
    """
    return stacked_value(call.build, operand, call.steps) if batched else operand.value


def _input_like(call: Call, inner: ir.Value, batched: bool) -> ir.Value:
    shape = with_axes(inner.shape, 0, _steps_dim(call)) if batched else inner.shape
    return ir.Value(name=call.build.names.fresh(inner.name or "input"), type=inner.type, shape=shape)


def _steps_dim(call: Call) -> int | str | None:
    return next((dim_of(operand.value, 0) for operand in call.operands if isinstance(operand, Operand) and operand.batched), None)
