"""A reversal before or after a Scan becomes a direction of the Scan, which costs nothing.

    ys = Reverse(Scan(Reverse(xs)))    ->    ys = Scan <scan_input_directions = [1], scan_output_directions = [1]> (xs)

A reversal is a Slice, Gather or ReverseSequence that provably turns a whole axis round; Transposes may stand between it and the
Scan. A result is turned where all that is made of it is such reversals, and questions for its shape; also a result that leaves an
If whose other branch gives no step, or one. Never done where more would have to be turned round than was once the loop is gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from rewrites.builder import Builder
from rewrites.context import Context
from rewrites.loops import Loop, LoopView, ScanInput, ScanOutput, ScanView, rebuild
from rewrites.moving import node_graphs, remove_nodes
from rewrites.normal_form.whole_reversals import Reversals
from rewrites.replace import replace_value
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch
from rewrites.spelling import perm_of, transpose
from rewrites.values import dim_of, rank_of

__all__ = ["NAME", "check"]

NAME = "reversals"

_FLIPS_SINCE = 10
_ASK_FOR_SHAPES = frozenset({"Shape", "Size"})


@dataclass(frozen=True)
class _Turned:
    """``scan`` reads ``source`` turned round; between them stand Transposes, the last of which is the first of ``perms``."""

    scan: ScanInput
    source: ir.Value
    perms: tuple[tuple[int, ...], ...]
    removes: bool


@dataclass(frozen=True)
class _Unturned:
    """``output`` is read by these reversals only."""

    output: ScanOutput
    reversals: tuple[ir.Node, ...]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Find reversals around a Scan."""
    if isinstance(loop, LoopView) or loop.batched:
        return NOTHING_HERE
    reversals = Reversals(ctx.opset, ctx.model.graph)
    inputs = [each for scan in loop.scan_inputs if (each := _turned(scan, reversals)) is not None]
    outputs = [found for output in loop.scan_outputs if (found := _unturned(output, reversals, ctx)) is not None]
    for some, others in ((inputs, outputs), (inputs, []), ([], outputs)):
        if (some or others) and _gains(loop, some, others, ctx.opset):
            break
    else:
        return NOTHING_HERE
    count = len(some) + sum(len(each.reversals) for each in others)
    what = f"made {count} reversals around the Scan directions" if count > 1 else "made a reversal beside the Scan a direction"
    return Patch(f"{what} of it", lambda: _edit(loop, some, others, ctx))


def _turned(scan: ScanInput, reversals: Reversals) -> _Turned | None:
    value, axis, perms, alone = scan.outer, scan.axis, list[tuple[int, ...]](), True
    while (node := value.producer()) is not None:
        alone = alone and len(value.uses()) == 1 and not value.is_graph_output()
        source, rank = node.inputs[0] if node.inputs else None, rank_of(value)
        if node.domain == "" and node.op_type in ("Identity", "Transpose") and source is not None and rank is not None:
            if node.op_type == "Transpose":
                perms.append(perm_of(node, rank))
                axis = perms[-1][axis]
            value = source
            continue
        found = reversals.read(node)
        if found is None or found.axis != axis or (perms and not alone):
            return None
        return _Turned(scan, found.source, tuple(perms), alone)
    return None


def _unturned(output: ScanOutput, reversals: Reversals, ctx: Context) -> _Unturned | None:
    if output.outer is None:
        return None
    found, waiting = list[ir.Node](), [(output.outer, output.axis)]
    while waiting:
        value, axis = waiting.pop()
        rank = rank_of(value)
        if rank is None:
            return None
        if value.is_graph_output():
            outside = _given_by_if(value, axis, ctx)
            if outside is None:
                return None
            waiting.append((outside, axis))
        for node, index in value.uses():
            if node.domain != "" or index != 0:
                return None
            if node.op_type in ("Identity", "Transpose"):
                waiting.append((node.outputs[0], perm_of(node, rank).index(axis) if node.op_type == "Transpose" else axis))
            elif node.op_type not in _ASK_FOR_SHAPES:
                reversal = reversals.read(node)
                if reversal is None or reversal.axis != axis:
                    return None
                found.append(node)
    return _Unturned(output, tuple(found)) if found else None


def _given_by_if(value: ir.Value, axis: int, ctx: Context) -> ir.Value | None:
    """Give the result of the If that a branch gives as ``value``, where the other branch's is the same turned round."""
    graph = value.graph
    if graph is ctx.model.graph or not isinstance(graph, ir.Graph) or list(graph.outputs).count(value) != 1:
        return None
    node = ctx.if_around(graph)
    if node is None:
        return None
    place = list(graph.outputs).index(value)
    dims = [dim_of(branch.outputs[place], axis) for branch in node_graphs(node) if branch is not graph]
    return node.outputs[place] if all(dim in (0, 1) for dim in dims) else None


def _reversals(inputs: Sequence[_Turned], outputs: Sequence[_Unturned]) -> int:
    return sum(each.removes for each in inputs) + sum(len(each.reversals) for each in outputs)


def _gains(loop: ScanView, inputs: Sequence[_Turned], outputs: Sequence[_Unturned], opset: int) -> bool:
    """Whether no more has to be turned round for a loop that is written as operators on all steps, or that can do so anyway."""
    turned = {id(each.scan) for each in inputs} | {id(each.output) for each in outputs}
    before = [[part.reverse for part in parts] for parts in (loop.scan_inputs, loop.scan_outputs)]
    parts = (loop.scan_inputs, loop.scan_outputs)
    after = [[part.reverse != (id(part) in turned) for part in each] for each in parts]
    if opset < _FLIPS_SINCE and len({*after[0], *after[1]}) > 1:
        return False
    return _flips(*after) <= _flips(*before) + _reversals(inputs, outputs)


def _flips(inputs: Sequence[bool], outputs: Sequence[bool]) -> int:
    return sum(reverse != all(inputs) for reverse in (*inputs, *outputs))


def _edit(loop: ScanView, inputs: Sequence[_Turned], outputs: Sequence[_Unturned], ctx: Context) -> list[ir.Node]:
    build = ctx.builder()
    turned = {id(each.scan): replace(each.scan, outer=_transposed(build, each), reverse=not each.scan.reverse) for each in inputs}
    build.insert_before(loop.node)
    for each in outputs:
        for node in each.reversals:
            source = node.inputs[0]
            assert source is not None
            replace_value(node.outputs[0], source, ctx.names)
            remove_nodes([node])
    others = {id(each.output): replace(each.output, reverse=not each.output.reverse) for each in outputs}
    return [
        rebuild(
            loop,
            ctx.names,
            scan_inputs=[turned.get(id(scan), scan) for scan in loop.scan_inputs],
            scan_outputs=[others.get(id(output), output) for output in loop.scan_outputs],
        )
    ]


def _transposed(build: Builder, each: _Turned) -> ir.Value:
    if not each.perms:
        return each.source
    axes = tuple(range(len(each.perms[0])))
    for perm in reversed(each.perms):
        axes = tuple(axes[axis] for axis in perm)
    return transpose(build, each.source, axes)
